//! The process that owns the rules: it watches the worker and makes sure that traffic flows, shaped or not.

mod shift;

use crate::config::Config;
use crate::log::Log;
use crate::message::{Message, Report};
use crate::{ShaperError, status};
use platform::clock;
use platform::nft::{RulePlan, Rules};
use platform::process::{InstanceLock, LockError, Received, Signals, wait_any};
use shift::Shift;
use std::time::Duration;
use units::Timestamp;

/// A worker that is silent for so long is hung.
const SILENCE: Duration = Duration::from_secs(1);

/// Wake-ups later than this tell that this process itself did not run: then the worker is given another chance.
const OWN_LATENESS: Duration = Duration::from_millis(200);

/// Between two looks at the networks that are reached without a gateway.
const ROUTES_PERIOD: Duration = Duration::from_secs(5);

/// A worker that ran for so long is trusted again: the one restart is for each failure of its own kind.
const TRUST: Duration = Duration::from_secs(600);

/// Lines between two headers.
const LINES_PER_HEADER: u32 = 20;

/// Shapes until a termination signal comes.
///
/// # Errors
/// What went wrong; the rules are gone then.
pub fn run(config: &Config) -> Result<(), ShaperError> {
    let _lock = lock(&config.interface.name)?;
    let signals = Signals::capture().map_err(ShaperError::io("take over signals"))?;
    let mut log = Log::open(config.log.as_deref())?;
    let shift = Shift::start(config, None)?;
    let rules = install(config, shift.queue())?;
    if !rules.are_owned() {
        log.event(
            "this kernel (before 5.12) cannot remove the packet rules by itself if this process is killed",
        );
    }
    log.result(&format!(
        "ready interface={} rate_mbps={:.3} overhead={} queue={}\n",
        config.interface.name,
        config.rate.as_mbit_f64(),
        config.overhead,
        shift.queue()
    ));
    let mut supervisor = Supervisor::new(config, signals, log, shift, rules);
    let result = supervisor.watch();
    supervisor.end(&result)?;
    result
}

fn lock(interface: &str) -> Result<InstanceLock, ShaperError> {
    InstanceLock::acquire(&format!("accel-shaper/{interface}")).map_err(|error| match error {
        LockError::Taken { holder } => {
            ShaperError::AlreadyRunning { interface: interface.to_owned(), holder }
        }
        LockError::Io(source) => ShaperError::Io { operation: "take the interface's lock", source },
    })
}

fn install(config: &Config, queue: u16) -> Result<Rules, ShaperError> {
    let plan = RulePlan {
        table: format!("accel_shaper_{}", config.interface.name),
        interface: config.interface.name.clone(),
        queue,
        bypass: config.bypass()?,
    };
    Rules::install(&plan).map_err(|error| {
        // ENOENT, EINVAL and EOPNOTSUPP mean a missing expression, and all four ways were tried.
        if matches!(error.errno(), 2 | 22 | 95) {
            ShaperError::KernelLacks {
                what: "the kernel's packet rules cannot hand packets to a queue",
                reason: error.to_string(),
                modules: "nft_queue (or nft_compat and xt_NFQUEUE)",
            }
        } else {
            error.into()
        }
    })
}

struct Supervisor<'a> {
    config: &'a Config,
    signals: Signals,
    log: Log,
    /// `None` after the last failure.
    shift: Option<Shift>,
    rules: Option<Rules>,
    has_failed_at: Option<Timestamp>,
    routes_due: Timestamp,
    last_report: Option<(Timestamp, Report)>,
    lines: u32,
}

impl<'a> Supervisor<'a> {
    fn new(config: &'a Config, signals: Signals, log: Log, shift: Shift, rules: Rules) -> Self {
        Self {
            config,
            signals,
            log,
            shift: Some(shift),
            rules: Some(rules),
            has_failed_at: None,
            routes_due: clock::now() + ROUTES_PERIOD,
            last_report: None,
            lines: 0,
        }
    }

    /// Watches until a signal comes or the worker has failed for good.
    fn watch(&mut self) -> Result<(), ShaperError> {
        loop {
            let Some(shift) = &self.shift else { return Ok(()) };
            let silent_at = shift.last_sign() + SILENCE;
            let deadline = silent_at.min(self.routes_due);
            let [signalled, spoken, ended] =
                wait_any([self.signals.fd(), shift.channel().fd(), shift.exit_fd()], deadline)
                    .map_err(ShaperError::io("watch the worker"))?;
            let now = clock::now();
            if signalled && let Some(name) = self.signals.take() {
                self.log.write(&format!("{name}: ending"));
                return Ok(());
            }
            if spoken {
                self.listen(now);
            }
            if ended {
                self.replace_worker("it ended by itself")?;
            } else if self.is_silent(now) {
                if now - deadline > OWN_LATENESS {
                    self.forgive(now);
                } else {
                    self.replace_worker("it was silent for a second")?;
                }
            }
            if now >= self.routes_due {
                self.follow_routes(now);
            }
        }
    }

    fn is_silent(&self, now: Timestamp) -> bool {
        self.shift.as_ref().is_some_and(|shift| now >= shift.last_sign() + SILENCE)
    }

    fn forgive(&mut self, now: Timestamp) {
        self.log.write("this process was stopped or starved; the worker gets another second");
        if let Some(shift) = &mut self.shift {
            shift.note_sign(now);
        }
    }

    /// Takes what the worker says.
    fn listen(&mut self, now: Timestamp) {
        while let Some(shift) = &mut self.shift {
            match shift.channel().receive() {
                Received::Message(bytes) => {
                    shift.note_sign(now);
                    self.hear(now, &bytes);
                }
                Received::Nothing => return,
                // A dying worker's channel closes a moment before its end shows; without this wait we would spin.
                Received::Closed => return drop(wait_any([shift.exit_fd()], now + SILENCE)),
            }
        }
    }

    fn hear(&mut self, now: Timestamp, bytes: &[u8]) {
        let Some(Message::Report(report)) = Message::from_bytes(bytes) else { return };
        if let Some((then, earlier)) = self.last_report.replace((now, report)) {
            let line = status::line(self.config.rate, &earlier, &report, now - then);
            print_line(&mut self.log, &mut self.lines, &line);
        }
    }

    /// Kills the worker and starts another one, once.
    fn replace_worker(&mut self, reason: &str) -> Result<(), ShaperError> {
        let Some(shift) = self.shift.take() else { return Ok(()) };
        let queue = shift.queue();
        let is_trusted = clock::now() - shift.started() > TRUST;
        let how = shift.kill();
        self.log.event(&format!("the worker failed: {reason} ({how}); packets it held are lost"));
        if self.has_failed_at.is_some() && !is_trusted {
            return Err(ShaperError::WorkerFailed { reason: reason.to_owned() });
        }
        self.has_failed_at = Some(clock::now());
        self.last_report = None;
        // Until the new worker listens, packets pass the queue unshaped.
        let again = Shift::start(self.config, Some(queue));
        self.shift = Some(again.map_err(|error| ShaperError::WorkerFailed { reason: error.to_string() })?);
        self.log.event("a new worker shapes");
        Ok(())
    }

    /// Follows changes of the interface's own networks. Where it fails, the old rules stay.
    fn follow_routes(&mut self, now: Timestamp) {
        self.routes_due = now + ROUTES_PERIOD;
        let (Some(rules), Ok(bypass)) = (&mut self.rules, self.config.bypass()) else { return };
        if rules.bypass() == bypass {
            return;
        }
        let names: Vec<_> = bypass.iter().map(ToString::to_string).collect();
        match rules.set_bypass(bypass) {
            Ok(()) => self.log.write(&format!("networks that are not shaped now: {}", names.join(" "))),
            Err(error) => self.log.event(&error.to_string()),
        }
    }

    /// No new packet is held first, then the worker hands out what it holds, and only then the rules go: the kernel
    /// drops held packets when a chain leaves its hook.
    fn end(&mut self, result: &Result<(), ShaperError>) -> Result<(), ShaperError> {
        let stopped = self.rules.as_mut().map_or(Ok(()), Rules::stop_queueing);
        if let Some(shift) = self.shift.take() {
            shift.end(&mut self.log);
        }
        let removed = self.rules.take().map_or(Ok(()), Rules::remove);
        if let Some((_, report)) = &self.last_report {
            self.log.write(&status::total(report));
        }
        match stopped.and(removed) {
            // The first error is the one to tell.
            Err(error) if result.is_ok() => Err(error.into()),
            _ => Ok(()),
        }
    }
}

fn print_line(log: &mut Log, lines: &mut u32, line: &str) {
    if lines.is_multiple_of(LINES_PER_HEADER) {
        log.result(status::HEADER);
    }
    *lines = lines.wrapping_add(1);
    log.result(line);
}
