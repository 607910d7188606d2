//! The near end of the echoes: frames and datagrams on open-loop schedules, all on one thread.

mod connect;
mod datagrams;
mod stream;
#[cfg(test)]
mod tests;

pub(crate) use datagrams::{DatagramSeries, Fate};
pub(crate) use stream::StreamSeries;

use crate::load::{LoadError, Token};
use crate::probe::{Schedule, Step, Window};
use datagrams::Datagrams;
use platform::poll::{Interest, Poller};
use platform::{clock, sched};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use stream::Stream;
use units::Timestamp;

/// SCHED_FIFO priority, below the handshake prober's.
const REALTIME_PRIORITY: u8 = 9;
/// A cancelled run is noticed within this time.
const CANCEL_CHECK: Duration = Duration::from_millis(50);
/// UDP payload of a full-size datagram: with its headers below the MTU of PPPoE and most tunnels.
const FULL_BYTES: usize = 1_400;

/// When to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EchoPlan {
    /// When probes are sent.
    pub(crate) window: Window,
    /// Mean time between two small datagrams; the others are rarer by the factors below.
    pub(crate) period: Duration,
    /// How far a probe may leave its regular time, as a share of the period.
    pub(crate) jitter: f64,
    /// What has not been answered for this long is lost.
    pub(crate) timeout: Duration,
    /// Seed of the schedules.
    pub(crate) seed: u64,
}

impl EchoPlan {
    /// Frames sent at once.
    pub(crate) fn frame_period(&self) -> Duration {
        2 * self.period
    }

    /// Frames in two writes.
    pub(crate) fn two_writes_period(&self) -> Duration {
        4 * self.period
    }

    /// Full-size datagrams: each is as much as sixteen small ones.
    pub(crate) fn full_period(&self) -> Duration {
        8 * self.period
    }
}

/// What the echoes of one window showed.
#[derive(Clone, Debug)]
pub(crate) struct EchoResult {
    /// Frames sent at once.
    pub(crate) frames: StreamSeries,
    /// Frames in two writes.
    pub(crate) two_writes: StreamSeries,
    /// Small datagrams.
    pub(crate) small: DatagramSeries,
    /// Full-size datagrams.
    pub(crate) full: DatagramSeries,
    /// How long after its time each probe was sent.
    pub(crate) lateness: Vec<Duration>,
    /// Slots of the schedules that had passed before the thread came to them.
    pub(crate) missed: usize,
}

/// Connections to an `accel serve`, open over all phases of a run.
pub(crate) struct EchoClient {
    server: SocketAddr,
    token: Option<Token>,
    streams: [Stream; 2],
    datagrams: [Datagrams; 2],
}

impl EchoClient {
    /// Connects, shows the token and opens the sessions; blocks for some round trips, `patience` each at most.
    ///
    /// # Errors
    /// When the server does not answer or turns this client away.
    pub(crate) fn connect(
        server: SocketAddr,
        token: Option<&Token>,
        patience: Duration,
    ) -> Result<Self, LoadError> {
        Ok(Self {
            server,
            token: token.cloned(),
            streams: [
                Stream::connect(server, token, false, patience)?,
                Stream::connect(server, token, true, patience)?,
            ],
            datagrams: [
                Datagrams::connect(server, token, crate::echo::MIN_DATAGRAM_BYTES, patience)?,
                Datagrams::connect(server, token, FULL_BYTES, patience)?,
            ],
        })
    }

    /// Sends and receives through the window and until everything is answered or given up, or soon after `cancel` is
    /// set. Call it on a thread of its own: it asks for real-time priority.
    ///
    /// # Errors
    /// When the system refuses to wait. A connection that breaks shows in what it does not answer.
    pub(crate) fn run(&mut self, plan: &EchoPlan, cancel: &AtomicBool) -> io::Result<EchoResult> {
        self.reopen(plan.timeout);
        clock::set_exact_timers()?;
        sched::request_fifo(REALTIME_PRIORITY);
        let mut poller = Poller::new()?;
        let periods = [plan.frame_period(), plan.two_writes_period(), plan.period, plan.full_period()];
        let mut schedules = [0, 1, 2, 3].map(|stream| {
            // Other streams of the generator than those of the handshakes.
            Schedule::new(plan.window, periods[stream], plan.jitter, plan.seed, 1_000 + stream as u64)
        });
        for (token, stream) in (0..).zip(&mut self.streams) {
            stream.start();
            poller.add(stream.socket(), token, Interest::READ)?;
        }
        for (token, datagrams) in (2..).zip(&mut self.datagrams) {
            datagrams.start();
            poller.add(datagrams.socket(), token, Interest::READ)?;
        }
        let give_up = plan.window.end + plan.timeout;
        let (mut lateness, mut missed) = (Vec::new(), 0);
        while !cancel.load(Ordering::Relaxed) {
            let next = self.send_due(&mut schedules, &mut lateness, &mut missed);
            let now = clock::now();
            if next.is_none() && (now >= give_up || self.is_all_answered()) {
                break;
            }
            let wake = next.unwrap_or(give_up).min(now + CANCEL_CHECK);
            let events = poller.wait(wake)?.to_vec();
            for event in events {
                self.receive(event.token, &poller);
            }
        }
        let ended = clock::now();
        let [frames, two_writes] = self.streams.each_mut().map(|s| s.finish(plan.timeout, ended));
        let [small, full] = self.datagrams.each_mut().map(|d| d.finish(plan.timeout, ended));
        Ok(EchoResult { frames, two_writes, small, full, lateness, missed })
    }

    /// Connects again what has broken; where that fails, the phase has no answers there.
    fn reopen(&mut self, patience: Duration) {
        for (two_writes, stream) in [false, true].into_iter().zip(&mut self.streams) {
            if stream.is_broken()
                && let Ok(fresh) = Stream::connect(self.server, self.token.as_ref(), two_writes, patience)
            {
                *stream = fresh;
            }
        }
        for (bytes, datagrams) in
            [crate::echo::MIN_DATAGRAM_BYTES, FULL_BYTES].into_iter().zip(&mut self.datagrams)
        {
            if datagrams.is_broken()
                && let Ok(fresh) = Datagrams::connect(self.server, self.token.as_ref(), bytes, patience)
            {
                *datagrams = fresh;
            }
        }
    }

    /// Sends what is due; when the next probe is, `None` at the end of all schedules.
    fn send_due(
        &mut self,
        schedules: &mut [Schedule; 4],
        lateness: &mut Vec<Duration>,
        missed: &mut usize,
    ) -> Option<Timestamp> {
        let mut next: Option<Timestamp> = None;
        for (number, schedule) in schedules.iter_mut().enumerate() {
            loop {
                match schedule.poll(clock::now()) {
                    Step::Send(due) => {
                        lateness.push(clock::now().saturating_since(due));
                        match number {
                            0 | 1 => self.streams[number].send(due),
                            _ => self.datagrams[number - 2].send(due),
                        }
                    }
                    Step::Missed(_) => *missed += 1,
                    Step::WaitUntil(due) => {
                        next = Some(next.map_or(due, |other| other.min(due)));
                        break;
                    }
                    Step::Done => break,
                }
            }
        }
        next
    }

    fn receive(&mut self, token: u64, poller: &Poller) {
        match token {
            0 | 1 => {
                let stream = &mut self.streams[token as usize];
                stream.receive();
                if stream.is_broken() {
                    // It would be reported as ready for ever. Refused only when it is not in the set.
                    drop(poller.remove(stream.socket()));
                }
            }
            _ => self.datagrams[usize::from(token == 3)].receive(),
        }
    }

    fn is_all_answered(&self) -> bool {
        self.streams.iter().all(Stream::is_all_answered)
            && self.datagrams.iter().all(Datagrams::is_all_answered)
    }
}
