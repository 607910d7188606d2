//! What the server knows of one client's datagrams. Pure.

use crate::echo::{Answer, Question};
use units::Timestamp;

/// Answers to one session between two ticks of 100 ms, at most: 1000 a second.
const ANSWERS_PER_TICK: u32 = 100;

/// The questions of one session that have arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrivals {
    count: u32,
    /// The largest sequence number so far; bit i of `window` stands for the one i less.
    largest: u32,
    window: u64,
    since_tick: u32,
}

impl Arrivals {
    /// Takes in a question that arrived at `arrived`; what to answer now, `None` when the session asks too much.
    pub(super) fn answer(
        &mut self,
        question: Question,
        arrived: Timestamp,
        now: Timestamp,
    ) -> Option<Answer> {
        self.since_tick = self.since_tick.saturating_add(1);
        if self.since_tick > ANSWERS_PER_TICK {
            return None;
        }
        let window = self.note(question.sequence);
        Some(Answer { question, arrived, answered: now, count: self.count, window })
    }

    /// Another tick has passed.
    pub(super) fn on_tick(&mut self) {
        self.since_tick = 0;
    }

    /// Notes an arrival; the window as seen from `sequence`. A duplicate is not counted again.
    fn note(&mut self, sequence: u32) -> u64 {
        if self.count == 0 || sequence > self.largest {
            let step = if self.count == 0 { 64 } else { sequence - self.largest };
            self.window = self.window.checked_shl(step).unwrap_or(0) | 1;
            (self.largest, self.count) = (sequence, self.count.saturating_add(1));
            return self.window;
        }
        let back = self.largest - sequence;
        let bit = 1_u64.checked_shl(back).unwrap_or(0);
        if bit != 0 && self.window & bit == 0 {
            self.window |= bit;
            self.count = self.count.saturating_add(1);
        }
        self.window.checked_shr(back).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(arrivals: &mut Arrivals, sequence: u32) -> Option<Answer> {
        let question = Question { session: [0; 16], sequence, sent: Timestamp::ZERO };
        arrivals.answer(question, Timestamp::ZERO, Timestamp::ZERO)
    }

    #[test]
    fn the_window_shows_who_has_arrived() {
        let mut arrivals = Arrivals::default();
        let seen: Vec<(u32, u64)> = [0, 1, 3, 2, 2, 7]
            .into_iter()
            .map(|sequence| ask(&mut arrivals, sequence).unwrap())
            .map(|answer| (answer.count, answer.window))
            .collect();
        assert_eq!(seen, [(1, 1), (2, 0b11), (3, 0b1101), (4, 0b111), (4, 0b111), (5, 0b1111_0001)]);
    }

    #[test]
    fn leaps_and_leftovers_do_no_harm() {
        let mut arrivals = Arrivals::default();
        for sequence in [u32::MAX, 0, 5, u32::MAX - 63, u32::MAX] {
            assert!(ask(&mut arrivals, sequence).is_some());
        }
        assert_eq!(arrivals.count, 2, "what is older than the window is not counted");
    }

    proptest::proptest! {
        #[test]
        fn any_order_of_questions_is_counted_once_each(
            sequences in proptest::collection::vec(0_u32..60, 1..90),
        ) {
            let mut arrivals = Arrivals::default();
            let mut seen = std::collections::BTreeSet::new();
            for sequence in sequences {
                seen.insert(sequence);
                let answer = ask(&mut arrivals, sequence).unwrap();
                assert_eq!(answer.count as usize, seen.len());
                for back in 0..=sequence {
                    assert_eq!(answer.window >> back & 1 == 1, seen.contains(&(sequence - back)), "{sequence} {back}");
                }
            }
        }
    }

    #[test]
    fn a_session_has_its_limit() {
        let mut arrivals = Arrivals::default();
        let answered = |arrivals: &mut Arrivals| (0..500).filter(|&s| ask(arrivals, s).is_some()).count();
        assert_eq!(answered(&mut arrivals), 100);
        arrivals.on_tick();
        assert_eq!(answered(&mut arrivals), 100);
    }
}
