//! What the two arms of a lab run say about the shaper.
//!
//! One run of each arm cannot tell a cure from drift on a real line. The emulated line does not drift: its rate,
//! delay and queue are set, so the lab may compare two runs directly, and says so. A difference is claimed only
//! where the 95 % intervals do not overlap and where it is larger than the instrument's own floor.

use crate::run::{Arm, Latency, PercentileRecord, Phase, PhaseRecord, Run};
use crate::statement::{ms_text, round};
use serde::{Deserialize, Serialize};

/// The comparison of shaper off with shaper on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The headline, in one sentence.
    pub sentence: String,
    /// What the shaper cost.
    pub cost: Cost,
    /// Every percentile of every phase that both arms measured.
    pub comparisons: Vec<Comparison>,
}

/// What the shaper cost; `None` where a figure is missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Goodput lost in the upload phase, in percent of that without the shaper; negative = gained.
    pub up_goodput_lost_pct: Option<f64>,
    /// Goodput lost in the download phase; negative = gained.
    pub down_goodput_lost_pct: Option<f64>,
    /// Idle median with the shaper minus that without.
    pub idle_added_ms: Option<f64>,
    /// What that difference is worth.
    pub idle_outcome: Option<Outcome>,
}

/// What a comparison came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Lower with the shaper.
    Lower,
    /// Higher with the shaper.
    Higher,
    /// The intervals overlap.
    NoDifferenceShown,
    /// A limit that the comparison needs is not bounded by the data.
    TooFewSamples,
    /// The intervals are apart by less than the instrument's own error.
    NotCredible,
}

/// One percentile of one phase in both arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The phase.
    pub phase: Phase,
    /// `p50`, `p95` or `p99`.
    pub percentile: String,
    /// Without the shaper.
    pub off_ms: Option<f64>,
    /// With the shaper.
    pub on_ms: Option<f64>,
    /// With minus without.
    pub difference_ms: Option<f64>,
    /// Differences up to this come from the instrument.
    pub floor_ms: f64,
    /// What it came to.
    pub outcome: Outcome,
}

/// Compares the arms of a run; `None` unless both were measured.
pub fn verdict(run: &Run) -> Option<Verdict> {
    let pairs: Vec<_> = Phase::ALL
        .into_iter()
        .filter_map(|phase| Some((run.phase(Arm::Off, phase)?, run.phase(Arm::On, phase)?)))
        .collect();
    let comparisons: Vec<Comparison> = pairs.iter().flat_map(|(off, on)| compare_phase(off, on)).collect();
    let headline = comparisons.iter().find(|c| c.phase == Phase::Upload && c.percentile == "p95")?;
    let upload = pairs.iter().find(|(off, _)| off.phase == Phase::Upload)?;
    let sentence = sentence(headline, upload.0, upload.1);
    Some(Verdict { sentence, cost: cost(run, &comparisons), comparisons })
}

/// One percentile of a latency.
type Pick = fn(&Latency) -> &PercentileRecord;

fn compare_phase(off: &PhaseRecord, on: &PhaseRecord) -> Vec<Comparison> {
    let picks: [(&str, Pick); 3] = [("p50", |l| &l.p50), ("p95", |l| &l.p95), ("p99", |l| &l.p99)];
    picks
        .into_iter()
        .map(|(name, pick)| {
            let (before, after) = (pick(&off.latency_ms), pick(&on.latency_ms));
            let difference = difference(before, after);
            let by_user = self::difference(pick(&off.user_latency_ms), pick(&on.user_latency_ms));
            let floor = floor_ms(difference, by_user, off, on);
            Comparison {
                phase: off.phase,
                percentile: name.to_owned(),
                off_ms: before.value,
                on_ms: after.value,
                difference_ms: difference.map(round),
                floor_ms: round(floor),
                outcome: outcome(before, after, difference, floor),
            }
        })
        .collect()
}

fn difference(off: &PercentileRecord, on: &PercentileRecord) -> Option<f64> {
    Some(on.value? - off.value?)
}

/// The largest of what the two clocks disagree by about this difference, of how late the emulator delivered, and
/// of the kernel RTT's own step of 1 us.
fn floor_ms(by_kernel: Option<f64>, by_user: Option<f64>, off: &PhaseRecord, on: &PhaseRecord) -> f64 {
    let clocks = by_kernel.zip(by_user).map_or(0.0, |(kernel, user)| (user - kernel).abs());
    let relay = off.line.relay_lateness_ms.p99.max(on.line.relay_lateness_ms.p99);
    clocks.max(relay).max(0.001)
}

fn outcome(off: &PercentileRecord, on: &PercentileRecord, difference: Option<f64>, floor: f64) -> Outcome {
    // Of the lower one the upper limit counts, of the higher one the lower limit.
    let (low, high, direction) =
        if on.value < off.value { (on, off, Outcome::Lower) } else { (off, on, Outcome::Higher) };
    let Some((hi_of_low, lo_of_high)) = low.hi.zip(high.lo) else { return Outcome::TooFewSamples };
    if hi_of_low >= lo_of_high {
        return Outcome::NoDifferenceShown;
    }
    if difference.is_some_and(|d| d.abs() > floor) { direction } else { Outcome::NotCredible }
}

fn sentence(headline: &Comparison, off: &PhaseRecord, on: &PhaseRecord) -> String {
    let arm = |p: &PhaseRecord| format!("{} (n = {})", with_interval(&p.latency_ms.p95), p.latency_ms.n);
    let (before, after) = (arm(off), arm(on));
    match headline.outcome {
        Outcome::Lower => format!("Under upload the shaper lowered p95 from {before} to {after}."),
        Outcome::Higher => format!("Under upload the shaper RAISED p95 from {before} to {after}."),
        Outcome::NoDifferenceShown => {
            format!("No difference shown under upload: p95 {before} without the shaper, {after} with it.")
        }
        Outcome::TooFewSamples => format!(
            "Too few independent samples under upload to compare: p95 {before} without the shaper, {after} with it."
        ),
        Outcome::NotCredible => format!(
            "Under upload p95 differs, {before} without the shaper and {after} with it, but by less than the \
             instrument's own error ({} ms): not credible.",
            headline.floor_ms
        ),
    }
}

/// `512.3 ms [95 % CI 480.1 to 530.3]`; says so where a limit or the value is missing.
fn with_interval(p: &PercentileRecord) -> String {
    let Some(value) = p.value else { return "no value".to_owned() };
    let (value, lo, hi) = (ms_text(value), p.lo.map(ms_text), p.hi.map(ms_text));
    match (lo, hi) {
        (Some(lo), Some(hi)) => format!("{value} ms [95 % CI {lo} to {hi}]"),
        (Some(lo), None) => format!("{value} ms [95 % CI from {lo}, no upper limit]"),
        (None, Some(hi)) => format!("{value} ms [95 % CI up to {hi}, no lower limit]"),
        (None, None) => format!("{value} ms [too few samples for an interval]"),
    }
}

fn cost(run: &Run, comparisons: &[Comparison]) -> Cost {
    let idle = comparisons.iter().find(|c| c.phase == Phase::Idle && c.percentile == "p50");
    let lost = |phase: Phase, goodput: fn(&PhaseRecord) -> Option<f64>| {
        let off = goodput(run.phase(Arm::Off, phase)?).filter(|&mbps| mbps > 0.0)?;
        let on = goodput(run.phase(Arm::On, phase)?)?;
        Some(round(100.0 * (off - on) / off))
    };
    Cost {
        up_goodput_lost_pct: lost(Phase::Upload, |p| p.up_mbps),
        down_goodput_lost_pct: lost(Phase::Download, |p| p.down_mbps),
        idle_added_ms: idle.and_then(|c| c.difference_ms),
        idle_outcome: idle.map(|c| c.outcome),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(value: f64, lo: Option<f64>, hi: Option<f64>) -> PercentileRecord {
        PercentileRecord { value: Some(value), lo, hi, n_eff: 100.0, grade: "ok".to_owned() }
    }

    fn judge(off: &PercentileRecord, on: &PercentileRecord, floor: f64) -> Outcome {
        outcome(off, on, difference(off, on), floor)
    }

    #[test]
    fn overlapping_intervals_show_no_difference() {
        let (off, on) = (p(20.0, Some(19.0), Some(21.0)), p(18.0, Some(17.0), Some(19.5)));
        assert_eq!(judge(&off, &on, 0.1), Outcome::NoDifferenceShown);
    }

    #[test]
    fn separate_intervals_show_the_direction() {
        let (high, low) = (p(500.0, Some(480.0), Some(520.0)), p(21.0, Some(20.0), Some(22.0)));
        assert_eq!(judge(&high, &low, 0.1), Outcome::Lower);
        assert_eq!(judge(&low, &high, 0.1), Outcome::Higher);
    }

    #[test]
    fn a_missing_limit_counts_only_on_the_side_that_matters() {
        let (high, low) = (p(500.0, Some(480.0), None), p(21.0, None, Some(22.0)));
        assert_eq!(judge(&high, &low, 0.1), Outcome::Lower);
        assert_eq!(judge(&p(500.0, None, None), &low, 0.1), Outcome::TooFewSamples);
    }

    #[test]
    fn less_than_the_floor_is_not_credible() {
        let (off, on) = (p(20.00, Some(19.99), Some(20.01)), p(20.05, Some(20.04), Some(20.06)));
        assert_eq!(judge(&off, &on, 0.2), Outcome::NotCredible);
        assert_eq!(judge(&off, &on, 0.01), Outcome::Higher);
    }
}
