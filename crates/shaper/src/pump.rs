//! The loop's body: packets from the datapath into the engine, the engine's decisions back.

use crate::Intake;
use engine::{Poll, Shaper};
use platform::datapath::Datapath;
use std::io;
use units::Timestamp;

/// A datapath and the engine behind it. It never waits: the caller does.
#[derive(Debug)]
pub struct Pump<D: Datapath> {
    datapath: D,
    engine: Shaper<D::Handle>,
    intake: Intake,
    /// Packets to send at one instant, and whether to mark them; empty between calls.
    due: Vec<(D::Handle, bool)>,
}

impl<D: Datapath> Pump<D> {
    /// Joins the two.
    pub const fn new(datapath: D, engine: Shaper<D::Handle>, intake: Intake) -> Self {
        Self { datapath, engine, intake, due: Vec::new() }
    }

    /// The datapath.
    pub const fn datapath(&self) -> &D {
        &self.datapath
    }

    /// The datapath, for what goes around the engine.
    pub const fn datapath_mut(&mut self) -> &mut D {
        &mut self.datapath
    }

    /// The engine.
    pub const fn engine(&self) -> &Shaper<D::Handle> {
        &self.engine
    }

    /// Takes in one batch of packets that arrived at `now`; returns their number.
    ///
    /// # Errors
    /// When the datapath is broken.
    #[inline]
    pub fn take_in(&mut self, now: Timestamp) -> io::Result<usize> {
        let Self { datapath, engine, intake, .. } = self;
        datapath.receive(|captured| engine.push(now, intake.describe(&captured)))
    }

    /// Sends and drops what is due at `now`. Returns when to call again, [`Timestamp::MAX`] when nothing is held.
    #[inline]
    pub fn serve(&mut self, now: Timestamp) -> Timestamp {
        let next = loop {
            match self.engine.poll(now) {
                Poll::Send { handle, mark } => self.due.push((handle, mark)),
                Poll::Drop { handle, .. } => self.datapath.discard(handle),
                Poll::WaitUntil(next) => break next,
                Poll::Idle => {
                    // All that was held leaves at this instant, so the order between flows means nothing; the
                    // kernel finds packets faster in the order in which they came.
                    self.due.sort_unstable();
                    break Timestamp::MAX;
                }
            }
        };
        for (handle, mark) in self.due.drain(..) {
            self.datapath.send(handle, mark);
        }
        self.datapath.flush();
        next
    }

    /// Lets every held packet go, unshaped and in order, then those that still wait to be taken in. Returns how many
    /// there were of both.
    ///
    /// # Errors
    /// When the datapath is broken.
    pub fn release_all(&mut self) -> io::Result<usize> {
        let mut released = 0;
        for handle in self.engine.drain() {
            self.datapath.send(handle, false);
            released += 1;
        }
        self.datapath.flush();
        Ok(released + self.pass_waiting()?)
    }

    /// Passes the packets that wait to be taken in, without the engine. Returns their number.
    ///
    /// # Errors
    /// When the datapath is broken.
    pub fn pass_waiting(&mut self) -> io::Result<usize> {
        let mut handles = Vec::new();
        while self.datapath.receive(|captured| handles.push(captured.handle))? > 0 {}
        for &handle in &handles {
            self.datapath.send(handle, false);
        }
        self.datapath.flush();
        Ok(handles.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Classifier;
    use engine::ShaperConfig;
    use platform::datapath::Captured;
    use std::collections::VecDeque;
    use std::time::Duration;
    use units::Rate;
    use wire::Salt;

    /// A datapath of packets that a test puts in, 3 in a batch.
    #[derive(Default)]
    struct Fake {
        waiting: VecDeque<u32>,
        decided: Vec<(u32, bool)>,
        flushed: Vec<(u32, bool)>,
    }

    impl Datapath for Fake {
        type Handle = u32;

        fn receive(&mut self, mut sink: impl FnMut(Captured<'_, u32>)) -> io::Result<usize> {
            let batch: Vec<_> = self.waiting.drain(..self.waiting.len().min(3)).collect();
            for &handle in &batch {
                sink(Captured { handle, head: &[], bytes: 1500, can_mark: true });
            }
            Ok(batch.len())
        }

        fn send(&mut self, handle: u32, _mark: bool) {
            self.decided.push((handle, true));
        }

        fn discard(&mut self, handle: u32) {
            self.decided.push((handle, false));
        }

        fn flush(&mut self) {
            self.flushed.append(&mut self.decided);
        }
    }

    fn pump(packets: u32) -> Pump<Fake> {
        let fake = Fake { waiting: (0..packets).collect(), ..Fake::default() };
        // One packet of 1500 bytes takes 1 ms.
        let engine = Shaper::new(ShaperConfig::new(Rate::mbit_per_s(12)));
        Pump::new(fake, engine, Intake::new(Salt([0, 0]), 1500, Classifier::default()))
    }

    #[test]
    fn packets_leave_in_order_at_the_rate() {
        let mut pump = pump(9);
        let mut now = Timestamp::from_millis(1_000);
        while pump.take_in(now).unwrap() > 0 {}
        let mut wakes = 0;
        loop {
            let next = pump.serve(now);
            if next == Timestamp::MAX {
                break;
            }
            assert!(next > now, "a wake-up in the past would spin");
            (now, wakes) = (next, wakes + 1);
        }
        assert_eq!(pump.datapath.flushed, (0..9).map(|handle| (handle, true)).collect::<Vec<_>>());
        assert!(now - Timestamp::from_millis(1_000) >= Duration::from_millis(7));
        assert!(wakes <= 9, "{wakes}");
    }

    #[test]
    fn at_the_end_held_and_waiting_packets_all_pass() {
        let mut pump = pump(10);
        let now = Timestamp::from_millis(1_000);
        pump.take_in(now).unwrap();
        pump.serve(now);
        let sent = pump.datapath.flushed.len();
        assert!(sent < 3);
        assert_eq!(pump.release_all().unwrap(), 10 - sent);
        assert_eq!(pump.datapath.flushed, (0..10).map(|handle| (handle, true)).collect::<Vec<_>>());
        assert_eq!(pump.serve(now), Timestamp::MAX);
    }
}
