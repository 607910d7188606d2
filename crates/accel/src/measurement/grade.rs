//! Latency under load as a letter, how sure it is, and what other scales make of the same run.

use super::summary::answered;
use super::{Bounded, PhaseRecord, ProbeKind, Row};
use crate::run::Phase;
use crate::statement::{Clock, round};
use crate::targets::GATEWAY_NAME;
use serde::{Deserialize, Serialize};
use stats::MIN_SAMPLES;
use std::fmt;

/// A grade of latency under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Letter {
    /// Less than 5 ms.
    #[serde(rename = "A+")]
    APlus,
    /// Less than 30 ms.
    A,
    /// Less than 60 ms.
    B,
    /// Less than 200 ms.
    C,
    /// Less than 400 ms.
    D,
    /// 400 ms or more.
    F,
}

impl Letter {
    /// The letter for an increase over the idle latency. The limits are those that DSLReports made common, where they stand
    /// for a mean; here they stand for p99 minus the idle median.
    pub fn of(increase_ms: f64) -> Self {
        match increase_ms {
            ..5.0 => Self::APlus,
            ..30.0 => Self::A,
            ..60.0 => Self::B,
            ..200.0 => Self::C,
            ..400.0 => Self::D,
            _ => Self::F,
        }
    }
}

impl fmt::Display for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::APlus => "A+",
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::F => "F",
        })
    }
}

/// The grades of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grades {
    /// Each loaded phase.
    pub phases: Vec<PhaseGrade>,
    /// The worst phase's: a line is as good as what it does when it is used.
    pub overall: PhaseGrade,
    /// What other scales make of it.
    pub other: OtherScales,
}

/// One phase's grade, at the target whose increase is the median of all targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseGrade {
    /// The phase.
    pub phase: Phase,
    /// The target.
    pub target: String,
    /// Loaded p99 minus idle p50. The limits come from those of both and hold with 90 % at least.
    pub increase_ms: Bounded,
    /// The letter of the value.
    pub letter: Letter,
    /// The letter of the lower limit; `None` when the data do not bound it.
    pub best: Option<Letter>,
    /// The letter of the upper limit; `None` when the data do not bound it.
    pub worst: Option<Letter>,
    /// What made the tail of the loaded phase; a tail of loss is no queue.
    pub tail: String,
}

impl PhaseGrade {
    /// `B`, `A to C`, `B or worse`.
    pub fn range(&self) -> String {
        match (self.best, self.worst) {
            (Some(best), Some(worst)) if best == worst => format!("{}", self.letter),
            (Some(best), Some(worst)) => format!("{} ({best} to {worst})", self.letter),
            (Some(best), None) => format!("{} ({best} or worse)", self.letter),
            (None, _) => format!("{} (too few samples to say how sure)", self.letter),
        }
    }
}

/// The same run on other scales.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherScales {
    /// DSLReports: mean of the increases of the means, upload and download.
    pub mean_increase_ms: Option<f64>,
    /// Its letter.
    pub mean_letter: Option<Letter>,
    /// Cloudflare AIM: larger of the medians of the last 20 probes under download and upload, minus the idle median.
    pub aim_increase_ms: Option<f64>,
    /// Its points for that: 20, 10, 5, 0, -10 or -20.
    pub aim_points: Option<i32>,
}

/// Grades a run; `None` without an idle phase and a loaded one with a target in both.
pub fn grades(phases: &[PhaseRecord]) -> Option<Grades> {
    let idle = phases.iter().find(|p| p.phase == Phase::Idle)?;
    let graded: Vec<PhaseGrade> = phases
        .iter()
        .filter(|p| p.phase != Phase::Idle)
        .filter_map(|loaded| grade_phase(idle, loaded))
        .collect();
    let overall = graded.iter().max_by(|a, b| increase_of(a).total_cmp(&increase_of(b)))?.clone();
    let other = other_scales(idle, phases, &overall.target);
    Some(Grades { phases: graded, overall, other })
}

fn increase_of(grade: &PhaseGrade) -> f64 {
    grade.increase_ms.value.unwrap_or(f64::NEG_INFINITY)
}

/// Rows that stand for the path to a service: handshakes with what lies beyond the gateway.
fn handshakes(phase: &PhaseRecord) -> impl Iterator<Item = &Row> {
    phase.rows.iter().filter(|row| row.kind == ProbeKind::Handshake && row.target != GATEWAY_NAME)
}

fn grade_phase(idle: &PhaseRecord, loaded: &PhaseRecord) -> Option<PhaseGrade> {
    let mut all: Vec<PhaseGrade> = handshakes(loaded)
        .filter_map(|row| {
            let before = handshakes(idle).find(|other| other.target == row.target)?;
            grade_row(loaded.phase, before, row)
        })
        .collect();
    all.sort_by(|a, b| increase_of(a).total_cmp(&increase_of(b)));
    let middle = all.len().checked_sub(1)? / 2;
    Some(all.swap_remove(middle))
}

fn grade_row(phase: Phase, idle: &Row, loaded: &Row) -> Option<PhaseGrade> {
    if loaded.latency_ms.n.min(idle.latency_ms.n) < MIN_SAMPLES {
        return None;
    }
    let (p99, p50) = (&loaded.latency_ms.p99, &idle.latency_ms.p50);
    let minus = |a: Option<f64>, b: Option<f64>| Some(round(a? - b?));
    let value = minus(p99.value, p50.value)?;
    let increase_ms = Bounded { value: Some(value), lo: minus(p99.lo, p50.hi), hi: minus(p99.hi, p50.lo) };
    Some(PhaseGrade {
        phase,
        target: loaded.target.clone(),
        increase_ms,
        letter: Letter::of(value),
        best: increase_ms.lo.map(Letter::of),
        worst: increase_ms.hi.map(Letter::of),
        tail: loaded.tail.label.clone(),
    })
}

fn other_scales(idle: &PhaseRecord, phases: &[PhaseRecord], target: &str) -> OtherScales {
    let answers = |phase: &PhaseRecord| {
        handshakes(phase).find(|row| row.target == target).map(|row| answered(&row.samples, Clock::Kernel))
    };
    let of = |phase| phases.iter().find(|p| p.phase == phase).and_then(answers).filter(|a| !a.is_empty());
    let before = answers(idle).unwrap_or_default();
    let (up, down) = (of(Phase::Upload), of(Phase::Download));
    let mean_increase = both(&up, &down, |a, b| {
        let increase = |loaded: &[f64]| mean(loaded) - mean(&before);
        f64::midpoint(increase(a), increase(b))
    });
    let aim = both(&up, &down, |a, b| {
        let last = |loaded: &[f64]| median(&loaded[loaded.len().saturating_sub(20)..]);
        last(a).max(last(b)) - median(&before)
    });
    let known = |value: Option<f64>| value.filter(|v| v.is_finite() && !before.is_empty()).map(round);
    let (mean_increase_ms, aim_increase_ms) = (known(mean_increase), known(aim));
    OtherScales {
        mean_increase_ms,
        mean_letter: mean_increase_ms.map(Letter::of),
        aim_increase_ms,
        aim_points: aim_increase_ms.map(aim_points),
    }
}

fn both(up: &Option<Vec<f64>>, down: &Option<Vec<f64>>, of: impl Fn(&[f64], &[f64]) -> f64) -> Option<f64> {
    Some(of(up.as_deref()?, down.as_deref()?))
}

/// Points of Cloudflare's scale for an increase under load (internalConfig.ts of cloudflare/speedtest: thresholds 10, 20,
/// 50, 100, 500 ms).
fn aim_points(increase_ms: f64) -> i32 {
    match increase_ms {
        ..10.0 => 20,
        ..20.0 => 10,
        ..50.0 => 5,
        ..100.0 => 0,
        ..500.0 => -10,
        _ => -20,
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::super::row;
    use super::*;
    use crate::run::{InstrumentRecord, SampleColumns};
    use std::time::Duration;

    fn phase(phase: Phase, targets: &[(&str, f64, f64)]) -> PhaseRecord {
        let rows = targets.iter().map(|&(name, from, by)| {
            let n = 600;
            // A Weyl sequence: spread evenly, without memory.
            let ms = |i: usize| round(from + by * (i as f64 * 0.618_033_988_749_895).fract());
            let samples = SampleColumns {
                t_ms: (0..n).map(|i| 20.0 * i as f64).collect(),
                kernel_ms: (0..n).map(|i| Some(ms(i))).collect(),
                user_ms: (0..n).map(|i| Some(ms(i))).collect(),
                retransmits: vec![0; n],
            };
            row(name, ProbeKind::Handshake, samples, Duration::from_millis(20), &[])
        });
        PhaseRecord {
            phase,
            started_ms: 0.0,
            measured_ms: 12_000.0,
            cut_short: None,
            up: None,
            down: None,
            bulk_retransmit_pct: None,
            data_mb: 0.0,
            rows: rows.collect(),
            names: Vec::new(),
            instrument: InstrumentRecord::default(),
            echo_instrument: None,
        }
    }

    #[test]
    fn the_limits_of_the_letters() {
        let letters = [-1.0, 4.999, 5.0, 29.9, 30.0, 59.9, 60.0, 199.9, 200.0, 399.9, 400.0].map(Letter::of);
        use Letter::{A, APlus, B, C, D, F};
        assert_eq!(letters, [APlus, APlus, A, A, B, B, C, C, D, D, F]);
        assert_eq!(serde_json::to_string(&APlus).unwrap(), "\"A+\"");
    }

    #[test]
    fn the_worst_phase_and_the_middle_target_decide() {
        let phases = [
            phase(
                Phase::Idle,
                &[("a", 10.0, 1.0), ("b", 10.0, 1.0), ("c", 10.0, 1.0), ("gateway", 1.0, 0.1)],
            ),
            phase(Phase::Download, &[("a", 12.0, 1.0), ("b", 20.0, 1.0), ("c", 500.0, 1.0)]),
            phase(
                Phase::Upload,
                &[("a", 50.0, 40.0), ("b", 50.0, 60.0), ("c", 50.0, 80.0), ("gateway", 900.0, 9.0)],
            ),
        ];
        let grades = grades(&phases).unwrap();
        assert_eq!((grades.phases[0].target.as_str(), grades.phases[0].letter), ("b", Letter::A));
        let overall = &grades.overall;
        assert_eq!((overall.phase, overall.target.as_str(), overall.letter), (Phase::Upload, "b", Letter::C));
        // p99 of 50 to 110 less 10.5.
        assert!((overall.increase_ms.value.unwrap() - 98.9).abs() < 0.5, "{overall:?}");
        assert!(
            overall.increase_ms.lo < overall.increase_ms.value
                && overall.increase_ms.value < overall.increase_ms.hi
        );
        assert_eq!(
            (overall.best, overall.worst, overall.range()),
            (Some(Letter::C), Some(Letter::C), "C".to_owned())
        );
        // (80 - 10.5 + 20.5 - 10.5) / 2 = 39.75: a mean scale is milder.
        assert!((grades.other.mean_increase_ms.unwrap() - 39.75).abs() < 0.5, "{:?}", grades.other);
        assert_eq!((grades.other.mean_letter, grades.other.aim_points), (Some(Letter::B), Some(0)));
    }

    #[test]
    fn the_grade_says_how_sure_it_is() {
        let grade = |best, worst| PhaseGrade {
            phase: Phase::Upload,
            target: "a".to_owned(),
            increase_ms: Bounded::default(),
            letter: Letter::B,
            best,
            worst,
            tail: "clean".to_owned(),
        };
        assert_eq!(grade(Some(Letter::A), Some(Letter::C)).range(), "B (A to C)");
        assert_eq!(grade(Some(Letter::B), None).range(), "B (B or worse)");
        assert_eq!(grade(None, None).range(), "B (too few samples to say how sure)");
    }

    #[test]
    fn without_idle_or_load_there_is_no_grade() {
        assert_eq!(grades(&[]), None);
        assert_eq!(grades(&[phase(Phase::Idle, &[("a", 1.0, 1.0)])]), None);
        assert_eq!(grades(&[phase(Phase::Upload, &[("a", 1.0, 1.0)])]), None);
        let strangers = [phase(Phase::Idle, &[("a", 1.0, 1.0)]), phase(Phase::Upload, &[("b", 1.0, 1.0)])];
        assert_eq!(grades(&strangers), None);
    }
}
