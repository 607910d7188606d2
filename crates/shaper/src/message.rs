//! What the worker tells its supervisor. Both ends are the same program file, so the form may change freely.

use std::time::Duration;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The queue is bound; packets can come.
    Hello {
        /// NFQUEUE number, for the rules.
        queue: u16,
    },
    /// The queue could not be bound.
    Failed {
        /// The system's error number, 0 for none.
        errno: i32,
        /// What failed, in words.
        text: String,
    },
    /// The loop turns.
    Heartbeat,
    /// The loop turns, and this is what it did.
    Report(Report),
}

/// Counters since the worker's start, and what waits at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Packets sent; a super-packet counts once.
    pub sent_packets: u64,
    /// Their bytes as charged to the link.
    pub sent_wire_bytes: u64,
    /// Packets dropped by CoDel.
    pub dropped_aqm: u64,
    /// Packets dropped because the buffer was full.
    pub dropped_overflow: u64,
    /// Packets marked with Congestion Experienced.
    pub marked: u64,
    /// Small packets sent ahead of their turn.
    pub express: u64,
    /// Packets that wait.
    pub backlog_packets: u64,
    /// Their bytes as charged to the link.
    pub backlog_bytes: u64,
    /// Median sojourn time of the packets sent since the last report, in ns; `u64::MAX` when there were none.
    pub sojourn_p50_ns: u64,
    /// 99th percentile of the same.
    pub sojourn_p99_ns: u64,
    /// Packets that passed unshaped because the worker was too slow.
    pub overrun_packets: u64,
    /// Messages of the kernel that were not understood, and verdicts that it refused.
    pub faults: u64,
}

const NO_PACKETS: u64 = u64::MAX;

impl Report {
    /// Puts a sojourn time into its field's form.
    pub fn nanos(span: Option<Duration>) -> u64 {
        span.map_or(NO_PACKETS, |span| u64::try_from(span.as_nanos()).unwrap_or(NO_PACKETS))
    }

    /// Median and 99th percentile of the sojourn time, `None` when no packet was sent.
    pub fn sojourn(&self) -> Option<(Duration, Duration)> {
        let is_known = self.sojourn_p50_ns != NO_PACKETS && self.sojourn_p99_ns != NO_PACKETS;
        is_known
            .then(|| (Duration::from_nanos(self.sojourn_p50_ns), Duration::from_nanos(self.sojourn_p99_ns)))
    }

    const fn fields(&self) -> [u64; 12] {
        [
            self.sent_packets,
            self.sent_wire_bytes,
            self.dropped_aqm,
            self.dropped_overflow,
            self.marked,
            self.express,
            self.backlog_packets,
            self.backlog_bytes,
            self.sojourn_p50_ns,
            self.sojourn_p99_ns,
            self.overrun_packets,
            self.faults,
        ]
    }

    const fn from_fields(fields: [u64; 12]) -> Self {
        let [
            sent_packets,
            sent_wire_bytes,
            dropped_aqm,
            dropped_overflow,
            marked,
            express,
            backlog_packets,
            backlog_bytes,
            sojourn_p50_ns,
            sojourn_p99_ns,
            overrun_packets,
            faults,
        ] = fields;
        Self {
            sent_packets,
            sent_wire_bytes,
            dropped_aqm,
            dropped_overflow,
            marked,
            express,
            backlog_packets,
            backlog_bytes,
            sojourn_p50_ns,
            sojourn_p99_ns,
            overrun_packets,
            faults,
        }
    }
}

impl Message {
    /// The bytes of one message: a letter, then its fields.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Hello { queue } => [&b"h"[..], &queue.to_ne_bytes()].concat(),
            Self::Failed { errno, text } => [&b"f"[..], &errno.to_ne_bytes(), text.as_bytes()].concat(),
            Self::Heartbeat => b"b".to_vec(),
            Self::Report(report) => {
                std::iter::once(b'r').chain(report.fields().into_iter().flat_map(u64::to_ne_bytes)).collect()
            }
        }
    }

    /// Reads a message back; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&kind, rest) = bytes.split_first()?;
        match kind {
            b'h' => Some(Self::Hello { queue: u16::from_ne_bytes(rest.try_into().ok()?) }),
            b'f' => {
                let (errno, text) = rest.split_at_checked(4)?;
                let errno = i32::from_ne_bytes(errno.try_into().ok()?);
                Some(Self::Failed { errno, text: String::from_utf8_lossy(text).into_owned() })
            }
            b'b' => rest.is_empty().then_some(Self::Heartbeat),
            b'r' => {
                let (words, []) = rest.as_chunks::<8>() else { return None };
                let fields: [u64; 12] =
                    words.iter().map(|&word| u64::from_ne_bytes(word)).collect::<Vec<_>>().try_into().ok()?;
                Some(Self::Report(Report::from_fields(fields)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_back() {
        let fields = std::array::from_fn(|i| i as u64 + 1);
        for message in [
            Message::Hello { queue: 44_224 },
            Message::Failed { errno: 1, text: "bind packet queue: no".to_owned() },
            Message::Heartbeat,
            Message::Report(Report::from_fields(fields)),
        ] {
            let bytes = message.to_bytes();
            assert_eq!(Message::from_bytes(&bytes), Some(message));
        }
    }

    #[test]
    fn anything_else_is_no_message() {
        for bytes in [&b""[..], b"x", b"h1", b"r12345678", b"bb", b"f12"] {
            assert_eq!(Message::from_bytes(bytes), None, "{bytes:?}");
        }
    }
}
