//! The samples of a series, column by column.

use super::ImportError;
use stats::Probe;

/// More probes than this are refused: 24 million are a month at ten a second.
const MAX_SAMPLES: usize = 24_000_000;

/// Stands for a probe without a count among others that have one.
pub(super) const UNCOUNTED: u8 = u8::MAX;

/// Probes in time order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    at_ms: Vec<f64>,
    /// Infinite = lost.
    rtt_ms: Vec<f64>,
    /// Empty where nothing counted, [`UNCOUNTED`] for single probes without a count.
    retransmits: Vec<u8>,
    /// The file has no times: probes are placed as the tool sends them by default.
    assumed_times: bool,
}

impl Columns {
    /// The number of probes.
    pub const fn len(&self) -> usize {
        self.rtt_ms.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.rtt_ms.is_empty()
    }

    /// Round trips in ms in time order; a lost probe is infinite.
    pub fn rtt_ms(&self) -> &[f64] {
        &self.rtt_ms
    }

    /// Gives up everything but the round trips, for the sake of memory.
    pub fn into_rtt_ms(self) -> Vec<f64> {
        self.rtt_ms
    }

    /// Mean time between two probes in ms; `None` for fewer than two and where the file has no times.
    pub fn interval_ms(&self) -> Option<f64> {
        let (first, last) = (self.at_ms.first()?, self.at_ms.last()?);
        (self.len() > 1 && !self.assumed_times).then(|| (last - first) / (self.len() - 1) as f64)
    }

    /// Whether the file had no times, so that probes stand at the tool's default interval.
    pub const fn has_assumed_times(&self) -> bool {
        self.assumed_times
    }

    /// Notes that the times are the tool's default.
    pub(super) const fn assume_times(&mut self) {
        self.assumed_times = true;
    }

    /// How many probes were sent again; `None` where nothing counted that.
    pub fn retransmitted(&self) -> Option<usize> {
        (!self.retransmits.is_empty())
            .then(|| self.retransmits.iter().filter(|&&count| count > 0 && count != UNCOUNTED).count())
    }

    /// Every `step`-th probe as the classifier takes it, with times from the first one.
    pub fn probes(&self, step: usize) -> Vec<Probe> {
        let start = self.at_ms.first().copied().unwrap_or(0.0);
        (0..self.len())
            .step_by(step.max(1))
            .map(|i| Probe {
                at_ms: self.at_ms[i] - start,
                rtt_ms: Some(self.rtt_ms[i]).filter(|rtt| rtt.is_finite()),
                retransmits: self.retransmits.get(i).copied().filter(|&count| count != UNCOUNTED),
            })
            .collect()
    }

    /// Takes whole columns; an infinite round trip is a lost probe, `retransmits` may be empty.
    ///
    /// # Errors
    /// When they differ in length or a probe makes no sense after the ones before it.
    pub(super) fn from_vectors(
        at_ms: Vec<f64>,
        rtt_ms: Vec<f64>,
        retransmits: Vec<u8>,
    ) -> Result<Self, ImportError> {
        let (times, rtts, counts) = (at_ms.len(), rtt_ms.len(), retransmits.len());
        if times != rtts || counts != 0 && counts != rtts {
            return Err(ImportError::Samples(format!(
                "columns of different length: {times} times, {rtts} round trips, {counts} counts"
            )));
        }
        let mut last = None;
        for (i, (&at, &rtt)) in at_ms.iter().zip(&rtt_ms).enumerate() {
            check(i + 1, last, at, (rtt != f64::INFINITY).then_some(rtt))?;
            last = Some(at);
        }
        Ok(Self { at_ms, rtt_ms, retransmits, assumed_times: false })
    }

    /// Takes one probe; `rtt_ms` is `None` for a lost one.
    ///
    /// # Errors
    /// When it makes no sense after the ones before it: the message tells its number from 1.
    pub(super) fn push(&mut self, at_ms: f64, rtt_ms: Option<f64>) -> Result<(), ImportError> {
        check(self.len() + 1, self.at_ms.last().copied(), at_ms, rtt_ms)?;
        self.at_ms.push(at_ms);
        self.rtt_ms.push(rtt_ms.unwrap_or(f64::INFINITY));
        Ok(())
    }

    /// The same with the count of retransmissions.
    pub(super) fn push_counted(
        &mut self,
        at_ms: f64,
        rtt_ms: Option<f64>,
        again: u8,
    ) -> Result<(), ImportError> {
        self.push(at_ms, rtt_ms)?;
        self.retransmits.resize(self.len() - 1, UNCOUNTED);
        self.retransmits.push(again.min(UNCOUNTED - 1));
        Ok(())
    }

    /// Returns spare memory.
    pub(super) fn finish(&mut self) {
        if !self.retransmits.is_empty() {
            self.retransmits.resize(self.rtt_ms.len(), UNCOUNTED);
        }
        self.at_ms.shrink_to_fit();
        self.rtt_ms.shrink_to_fit();
        self.retransmits.shrink_to_fit();
    }
}

/// Whether a probe makes sense after the last one; `number` counts from 1.
fn check(number: usize, last_ms: Option<f64>, at_ms: f64, rtt_ms: Option<f64>) -> Result<(), ImportError> {
    let what = match (rtt_ms, last_ms) {
        _ if number > MAX_SAMPLES => format!("more than {MAX_SAMPLES} samples"),
        _ if !at_ms.is_finite() => "the time is no finite number".into(),
        (Some(rtt), _) if !rtt.is_finite() => format!("round trip of {rtt} ms"),
        (Some(rtt), _) if rtt < 0.0 => format!("negative round trip of {rtt} ms"),
        (_, Some(last)) if at_ms == last => "sent at the same time as the one before: a duplicate".into(),
        (_, Some(last)) if at_ms < last => {
            format!("sent {} ms before the one before: not in time order", last - at_ms)
        }
        _ => return Ok(()),
    };
    Err(ImportError::Samples(format!("sample {number}: {what}")))
}
