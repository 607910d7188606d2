//! The datagrams: questions, and answers of the same length. Pure.
//!
//! | bytes | question | answer |
//! |---|---|---|
//! | 16 | session | session |
//! | 4 | sequence number | the same |
//! | 8 | client's time | the same |
//! | 8 | 0 | server's time of arrival |
//! | 8 | 0 | server's time of sending |
//! | 4 | 0 | questions of this session that have arrived so far |
//! | 8 | 0 | bit i: the question numbered i less than this one has arrived |
//! | rest | anything | the same |
//!
//! Little endian, times in ns of each machine's monotonic clock: only their differences at one end mean something.
//! The bits tell for each of the last 64 questions which way it was lost, whatever the order of arrival.

use units::Timestamp;

/// Length of a session's name.
pub(crate) const SESSION_BYTES: usize = 16;
/// Names a session; nobody can guess it.
pub(crate) type Session = [u8; SESSION_BYTES];

/// Shortest question: an answer must fit into it.
pub(crate) const MIN_DATAGRAM_BYTES: usize = 64;

/// What a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) session: Session,
    pub(crate) sequence: u32,
    pub(crate) sent: Timestamp,
}

/// What a server makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) question: Question,
    /// On the server's clock.
    pub(crate) arrived: Timestamp,
    /// On the server's clock.
    pub(crate) answered: Timestamp,
    /// Questions of this session that have arrived, this one included.
    pub(crate) count: u32,
    /// Bit i: question `sequence - i` has arrived.
    pub(crate) window: u64,
}

impl Question {
    /// Writes it to the start of `datagram`, at least [`MIN_DATAGRAM_BYTES`] long.
    pub(crate) fn write(&self, datagram: &mut [u8]) {
        datagram[..16].copy_from_slice(&self.session);
        datagram[16..20].copy_from_slice(&self.sequence.to_le_bytes());
        datagram[20..28].copy_from_slice(&self.sent.as_nanos().to_le_bytes());
        datagram[28..56].fill(0);
    }

    /// Reads it; `None` when the datagram is too short to be answered.
    pub(crate) fn read(datagram: &[u8]) -> Option<Self> {
        if datagram.len() < MIN_DATAGRAM_BYTES {
            return None;
        }
        let session = *datagram.first_chunk()?;
        Some(Self { session, sequence: number(datagram, 16)?, sent: time(datagram, 20)? })
    }
}

impl Answer {
    /// Turns a question's datagram into its answer.
    pub(crate) fn write(&self, datagram: &mut [u8]) {
        self.question.write(datagram);
        datagram[28..36].copy_from_slice(&self.arrived.as_nanos().to_le_bytes());
        datagram[36..44].copy_from_slice(&self.answered.as_nanos().to_le_bytes());
        datagram[44..48].copy_from_slice(&self.count.to_le_bytes());
        datagram[48..56].copy_from_slice(&self.window.to_le_bytes());
    }

    /// Reads it; `None` when it is too short to be one.
    pub(crate) fn read(datagram: &[u8]) -> Option<Self> {
        Some(Self {
            question: Question::read(datagram)?,
            arrived: time(datagram, 28)?,
            answered: time(datagram, 36)?,
            count: number(datagram, 44)?,
            window: u64::from_le_bytes(*datagram.get(48..)?.first_chunk()?),
        })
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn time(bytes: &[u8], at: usize) -> Option<Timestamp> {
    Some(Timestamp::from_nanos(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_read_back_at_any_length() {
        let question =
            Question { session: [7; 16], sequence: 0xDEAD_BEEF, sent: Timestamp::from_nanos(u64::MAX) };
        let (arrived, answered) = (Timestamp::from_nanos(5), Timestamp::from_nanos(6));
        let answer = Answer { question, arrived, answered, count: 9, window: 1 << 63 };
        for length in [MIN_DATAGRAM_BYTES, 100, 1_400] {
            let mut datagram = vec![0xAA; length];
            question.write(&mut datagram);
            assert_eq!(Question::read(&datagram), Some(question));
            answer.write(&mut datagram);
            assert_eq!((Answer::read(&datagram), datagram.len()), (Some(answer), length));
        }
    }

    #[test]
    fn what_is_too_short_is_nothing() {
        for length in 0..MIN_DATAGRAM_BYTES {
            assert_eq!(Question::read(&vec![0xFF; length]), None);
            assert_eq!(Answer::read(&vec![0xFF; length]), None);
        }
    }
}
