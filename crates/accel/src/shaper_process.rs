//! The real `shaper` program beside this one, run inside the client's namespace and ended on every path.

use crate::run::ShaperRecord;
use platform::namespace::Namespace;
use platform::{clock, process};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use units::Rate;

/// From start to the line that says that it shapes.
const READY_WITHIN: Duration = Duration::from_secs(8);
/// From SIGTERM to its end; after that it is killed.
const ENDS_WITHIN: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(20);
/// What a ready shaper's first line starts with.
const READY: &str = "ready ";

/// Why there is no shaper.
#[derive(Debug, thiserror::Error)]
pub enum ShaperError {
    /// It is not beside this program.
    #[error("the shaper is missing: {0} does not exist")]
    Missing(PathBuf),
    /// The system did not start it.
    #[error("start {program}: {source}")]
    Start {
        /// Its path.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It did not say that it shapes.
    #[error("the shaper did not say within {} s that it shapes", READY_WITHIN.as_secs())]
    NotReady,
    /// Its first line was something else.
    #[error("the shaper's first line was not understood: {0:?}")]
    NotUnderstood(String),
    /// It ended by itself.
    #[error("the shaper ended ({status}): {said}")]
    Ended {
        /// How.
        status: String,
        /// The last lines of its stderr.
        said: String,
    },
    /// It had to be killed.
    #[error("the shaper did not end within {} s of SIGTERM and was killed", ENDS_WITHIN.as_secs())]
    Killed,
    /// The run was interrupted while waiting for it.
    #[error("interrupted")]
    Interrupted,
}

/// The shaper's path and version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShaperProgram {
    path: PathBuf,
    /// As it names itself with `--version`; empty when it does not.
    pub version: String,
}

impl ShaperProgram {
    /// Finds the program in the folder of this one. Call it before there is an emulated line to lose.
    ///
    /// # Errors
    /// When it is missing or does not start.
    pub fn find() -> Result<Self, ShaperError> {
        let name = format!("shaper{}", std::env::consts::EXE_SUFFIX);
        let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join(&name)));
        let path = beside.unwrap_or_else(|| PathBuf::from(&name));
        if !path.is_file() {
            return Err(ShaperError::Missing(path));
        }
        let answer = Command::new(&path)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|source| ShaperError::Start { program: path.clone(), source })?;
        let version = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        Ok(Self { path, version })
    }

    /// Starts it inside `namespace` and waits until it shapes.
    ///
    /// # Errors
    /// When it does not start, ends, is not ready in time, or `cancel` is set.
    pub fn start(
        &self,
        namespace: &Namespace,
        interface: &str,
        rate: Rate,
        cancel: &AtomicBool,
    ) -> Result<ShaperProcess, ShaperError> {
        let (keeper, child) = Keeper::start(namespace, command(&self.path, interface, rate));
        let mut child = child.map_err(|source| ShaperError::Start { program: self.path.clone(), source })?;
        let (sender, lines) = mpsc::channel();
        let stdout = child.stdout.take().map(|out| {
            thread::spawn(move || {
                // The receiver is gone only once the process is being dropped.
                BufReader::new(out).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok());
            })
        });
        let stderr = child.stderr.take().map(|mut err| {
            thread::spawn(move || {
                let mut said = Vec::new();
                drop(err.read_to_end(&mut said));
                String::from_utf8_lossy(&said).into_owned()
            })
        });
        let mut process =
            ShaperProcess { child, lines, ready: String::new(), stdout, stderr, _keeper: keeper };
        process.ready = process.await_ready(cancel)?;
        Ok(process)
    }
}

fn command(path: &Path, interface: &str, rate: Rate) -> Command {
    let mut command = Command::new(path);
    command
        .args(["--interface", interface, "--rate-mbps", &rate.as_mbit_f64().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A Ctrl-C in the terminal goes to this program alone, which then ends the shaper.
        .process_group(0);
    command
}

/// A running shaper. Dropping it ends it.
#[derive(Debug)]
pub struct ShaperProcess {
    child: Child,
    lines: Receiver<String>,
    ready: String,
    stdout: Option<JoinHandle<()>>,
    stderr: Option<JoinHandle<String>>,
    /// Last, so that it outlives the rest: its end would end the child.
    _keeper: Keeper,
}

/// The thread that has started the shaper. The system ends the shaper with it, so that not even `kill -9` of this
/// program leaves one behind.
#[derive(Debug)]
struct Keeper {
    /// The thread ends when this is dropped.
    _release: Sender<()>,
}

impl Keeper {
    /// Starts `command` from a new thread inside `namespace`.
    fn start(namespace: &Namespace, mut command: Command) -> (Self, io::Result<Child>) {
        let (release, released) = mpsc::channel::<()>();
        let (started, child) = mpsc::channel();
        let work = move || {
            // Whoever waits for it is gone only when this program ends.
            drop(started.send(process::end_with_thread(&mut command).spawn()));
            // Nothing is ever sent: returns once the other end is dropped.
            let _ = released.recv();
        };
        drop(namespace.spawn("shaper-keeper", work));
        let child = child.recv().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")));
        (Self { _release: release }, child)
    }
}

impl ShaperProcess {
    fn await_ready(&mut self, cancel: &AtomicBool) -> Result<String, ShaperError> {
        let deadline = clock::now() + READY_WITHIN;
        loop {
            if cancel.load(Ordering::Relaxed) {
                return Err(ShaperError::Interrupted);
            }
            match self.lines.recv_timeout(STEP) {
                Ok(line) if line.starts_with(READY) => return Ok(line),
                Ok(line) => return Err(ShaperError::NotUnderstood(line)),
                Err(RecvTimeoutError::Timeout) if clock::now() < deadline => self.check()?,
                Err(RecvTimeoutError::Timeout) => return Err(ShaperError::NotReady),
                Err(RecvTimeoutError::Disconnected) => {
                    // Its stdout is closed: it is ending; the status follows within moments.
                    return Err(self.wait(ENDS_WITHIN).map_or(ShaperError::NotReady, |s| self.ended(s)));
                }
            }
        }
    }

    /// Whether it still runs.
    ///
    /// # Errors
    /// When it has ended by itself.
    pub fn check(&mut self) -> Result<(), ShaperError> {
        match self.child.try_wait() {
            Ok(Some(status)) => Err(self.ended(status)),
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// Ends it by SIGTERM and hands over what it said.
    ///
    /// # Errors
    /// When it had ended before, ends with a failure, or must be killed.
    pub fn stop(mut self) -> Result<ShaperRecord, ShaperError> {
        self.check()?;
        // An error means that it ended in between; waiting says how.
        drop(process::terminate(&mut self.child));
        match self.wait(ENDS_WITHIN) {
            Some(status) if status.success() => {}
            Some(status) => return Err(self.ended(status)),
            None => return Err(ShaperError::Killed),
        }
        if let Some(reader) = self.stdout.take() {
            drop(reader.join());
        }
        Ok(ShaperRecord { ready: self.ready.clone(), status: self.lines.try_iter().collect() })
    }

    fn wait(&mut self, at_most: Duration) -> Option<ExitStatus> {
        let deadline = clock::now() + at_most;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if clock::now() >= deadline {
                return None;
            }
            clock::sleep_until(clock::now() + STEP);
        }
    }

    fn ended(&mut self, status: ExitStatus) -> ShaperError {
        let said = self.stderr.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        let said = if said.trim().is_empty() { "it said nothing".to_owned() } else { said.trim().to_owned() };
        ShaperError::Ended { status: status.to_string(), said }
    }
}

impl Drop for ShaperProcess {
    fn drop(&mut self) {
        if process::terminate(&mut self.child).is_err() {
            return;
        }
        if self.wait(ENDS_WITHIN).is_none() {
            // Already gone is as good as killed.
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}
