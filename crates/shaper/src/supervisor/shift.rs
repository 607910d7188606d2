//! One worker's time at work, from hello to goodbye.

use crate::ShaperError;
use crate::config::Config;
use crate::log::Log;
use crate::message::Message;
use platform::clock;
use platform::process::{Channel, Received, Worker, wait_any};
use std::os::fd::BorrowedFd;
use std::time::Duration;
use units::Timestamp;

/// So long may a worker take from its start to its hello (a loaded machine, a cold disk).
const HELLO: Duration = Duration::from_secs(5);

/// So long may it take to hand out what it holds.
const GOODBYE: Duration = Duration::from_secs(2);

/// A worker that has bound its queue.
pub(super) struct Shift {
    worker: Worker,
    queue: u16,
    started: Timestamp,
    last_sign: Timestamp,
}

impl Shift {
    /// Starts a worker and waits until it has bound its queue: `queue`, or a free one.
    pub(super) fn start(config: &Config, queue: Option<u16>) -> Result<Self, ShaperError> {
        let arguments = config.worker_settings(queue).to_arguments();
        let worker = Worker::start(&arguments).map_err(ShaperError::io("start the worker"))?;
        let queue = wait_for_hello(&worker)?;
        let now = clock::now();
        Ok(Self { worker, queue, started: now, last_sign: now })
    }

    pub(super) const fn queue(&self) -> u16 {
        self.queue
    }

    pub(super) const fn channel(&self) -> &Channel {
        self.worker.channel()
    }

    pub(super) fn exit_fd(&self) -> BorrowedFd<'_> {
        self.worker.exit_fd()
    }

    pub(super) const fn started(&self) -> Timestamp {
        self.started
    }

    pub(super) const fn last_sign(&self) -> Timestamp {
        self.last_sign
    }

    pub(super) const fn note_sign(&mut self, now: Timestamp) {
        self.last_sign = now;
    }

    /// Kills the worker; says how it ended.
    pub(super) fn kill(mut self) -> String {
        self.worker.kill().map_or_else(|error| error.to_string(), |status| status.to_string())
    }

    /// Lets the worker hand out what it holds and end.
    pub(super) fn end(self, log: &mut Log) {
        let ending = match self.worker.hang_up() {
            Ok(ending) => ending,
            Err(error) => return log.event(&format!("the worker is killed: {error}")),
        };
        let ended = wait_any([ending.exit_fd()], clock::now() + GOODBYE);
        if !matches!(ended, Ok([true])) {
            log.event("the worker did not end in time and is killed; packets it held are lost");
        }
    }
}

fn wait_for_hello(worker: &Worker) -> Result<u16, ShaperError> {
    let deadline = clock::now() + HELLO;
    loop {
        let channel = worker.channel();
        wait_any([channel.fd()], deadline).map_err(ShaperError::io("wait for the worker"))?;
        match channel.receive() {
            Received::Message(bytes) => match Message::from_bytes(&bytes) {
                Some(Message::Hello { queue }) => return Ok(queue),
                Some(Message::Failed { errno, text }) => return Err(explain(errno, text)),
                _ => {}
            },
            Received::Closed => return Err(ShaperError::WorkerStart("it ended at once".to_owned())),
            Received::Nothing if clock::now() >= deadline => {
                return Err(ShaperError::WorkerStart("it said nothing for five seconds".to_owned()));
            }
            Received::Nothing => {}
        }
    }
}

fn explain(errno: i32, text: String) -> ShaperError {
    /// EINVAL, EOPNOTSUPP and EPROTONOSUPPORT: nobody listens to requests about queues.
    const NO_QUEUES: [i32; 3] = [22, 95, 93];
    if NO_QUEUES.contains(&errno) {
        return ShaperError::KernelLacks {
            what: "the kernel has no packet queues (NFQUEUE)",
            reason: text,
            modules: "nfnetlink_queue",
        };
    }
    ShaperError::WorkerStart(text)
}
