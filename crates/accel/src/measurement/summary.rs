//! From samples to the statements of one row.

use super::{Bounded, Goodput, Jitter, Percentiles, ProbeKind, Row, Tail, Way};
use crate::load::Series as LoadSeries;
use crate::probe::Window;
use crate::run::{PercentileRecord, SampleColumns};
use crate::statement::{Clock, loss_record, round};
use stats::{Percentile, Probe, Series, block_mean, classify};
use std::time::Duration;
use units::{Ratio, as_ms};

/// Blocks whose means give an interval.
const BLOCKS: usize = 10;

/// The statements of one target and probe. `idle` are its answers without load, or none.
pub fn row(target: &str, kind: ProbeKind, samples: SampleColumns, period: Duration, idle: &[f64]) -> Row {
    let answers = answered(&samples, Clock::Kernel);
    let latency = percentiles(&answers);
    let by_user = (kind == ProbeKind::Handshake).then(|| percentiles(&answered(&samples, Clock::User)));
    Row {
        target: target.to_owned(),
        kind,
        jitter: jitter(&latency, &answers, period),
        latency_ms: latency,
        user_latency_ms: by_user,
        loss: crate::statement::probe_loss(&samples),
        tail: tail(kind, &samples, idle),
        ways: None,
        samples,
    }
}

/// Answers at the first attempt, in ms and in the order of sending: a SYN that was sent again says something about
/// loss and nothing about the queue.
pub(super) fn answered(samples: &SampleColumns, clock: Clock) -> Vec<f64> {
    (0..samples.t_ms.len())
        .filter(|&i| samples.retransmits[i] == 0)
        .filter_map(|i| {
            let user = samples.user_ms[i]?;
            Some(if clock == Clock::Kernel { samples.kernel_ms[i].unwrap_or(user) } else { user })
        })
        .filter(|ms| ms.is_finite())
        .collect()
}

/// The percentiles of values in time order.
pub fn percentiles(in_time: &[f64]) -> Percentiles {
    let values: Vec<f64> = in_time.iter().copied().filter(|value| value.is_finite()).collect();
    let n = values.len();
    let series = Series::new(values).expect("only finite values were kept");
    let at = |percent: f64| {
        let p = Ratio::from_percent(percent).expect("a percentage between 0 and 100");
        record(&series.percentile(p))
    };
    Percentiles { p50: at(50.0), p90: at(90.0), p95: at(95.0), p99: at(99.0), n }
}

fn record(percentile: &Percentile) -> PercentileRecord {
    PercentileRecord {
        value: percentile.value.map(round),
        lo: percentile.lo.map(round),
        hi: percentile.hi.map(round),
        n_eff: round(percentile.n_eff),
        grade: percentile.grade.as_str().to_owned(),
    }
}

fn jitter(latency: &Percentiles, answers: &[f64], period: Duration) -> Jitter {
    let minus = |a: Option<f64>, b: Option<f64>| Some(round((a? - b?).max(0.0)));
    let (high, middle) = (&latency.p95, &latency.p50);
    let pdv_ms = Bounded {
        value: minus(high.value, middle.value),
        lo: minus(high.lo, middle.hi),
        hi: minus(high.hi, middle.lo),
    };
    let steps: Vec<f64> = answers.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let mean = block_mean(&block_means(&steps));
    let value = (!steps.is_empty()).then(|| round(steps.iter().sum::<f64>() / steps.len() as f64));
    let successive_ms =
        Bounded { value, lo: mean.map(|m| round(m.lo.max(0.0))), hi: mean.map(|m| round(m.hi)) };
    Jitter { pdv_ms, successive_ms, probe_period_ms: round(as_ms(period)) }
}

/// The means of ten blocks; none when there are not two values for each.
fn block_means(values: &[f64]) -> Vec<f64> {
    let length = values.len() / BLOCKS;
    if length < 2 {
        return Vec::new();
    }
    values.chunks_exact(length).take(BLOCKS).map(|b| b.iter().sum::<f64>() / b.len() as f64).collect()
}

fn tail(kind: ProbeKind, samples: &SampleColumns, idle: &[f64]) -> Tail {
    if kind == ProbeKind::EchoTwoWrites {
        let why =
            "the receiver's timer for delayed acknowledgements makes most of it, not the path".to_owned();
        return Tail { label: "not_classified".to_owned(), why, basis: "shape".to_owned() };
    }
    let probe = |i: usize| {
        let counted = kind == ProbeKind::Handshake;
        let retransmits = counted.then_some(samples.retransmits[i]);
        // The kernel gives no RTT for a SYN that was sent again; the whole wait is what its user had.
        let rtt_ms = samples.kernel_ms[i].or(samples.user_ms[i]);
        Probe { at_ms: samples.t_ms[i], rtt_ms, retransmits }
    };
    let probes: Vec<Probe> = (0..samples.t_ms.len()).map(probe).collect();
    let found = classify(&probes, idle);
    Tail { label: found.label.as_str().to_owned(), why: found.why, basis: found.basis.as_str().to_owned() }
}

/// One way of datagrams: `lost` for those that were sent on it, in order, and the delay of those that arrived by two
/// clocks that do not agree, `None` = not known.
pub fn way(lost: &[bool], delay_ms: Vec<Option<f64>>) -> Way {
    let known: Vec<f64> = delay_ms.iter().copied().flatten().collect();
    let smallest = known.iter().copied().fold(f64::INFINITY, f64::min);
    let above: Vec<f64> = known.iter().map(|delay| delay - smallest).collect();
    Way {
        loss: loss_record(&stats::loss(lost)),
        above_smallest_ms: percentiles(&above),
        delay_ms: delay_ms.into_iter().map(|delay| delay.map(|ms| round(ms - smallest))).collect(),
    }
}

/// The goodput within the window and its interval from ten equal parts of it; `None` when the series does not cover it.
pub fn goodput(series: &LoadSeries, window: Window) -> Option<Goodput> {
    let whole = series.goodput(window)?;
    let part = window.length() / BLOCKS as u32;
    let block = |number: u32| {
        let start = window.start + part * number;
        series.goodput(Window { start, end: start + part }).map(|rate| rate.as_mbit_f64())
    };
    let blocks: Option<Vec<f64>> = (0..BLOCKS as u32).map(block).collect();
    let blocks = blocks.unwrap_or_default();
    let mean = block_mean(&blocks);
    Some(Goodput {
        mbps: round(whole.as_mbit_f64()),
        lo_mbps: mean.map(|m| round(m.lo.max(0.0))),
        hi_mbps: mean.map(|m| round(m.hi)),
        blocks: blocks.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(20);

    /// 20.00 to 20.99 ms without memory, every tenth sent again.
    fn samples(n: usize) -> SampleColumns {
        let ms = |i: usize| 20.0 + (i * 37 % 100) as f64 / 100.0;
        SampleColumns {
            t_ms: (0..n).map(|i| 20.0 * i as f64).collect(),
            kernel_ms: (0..n).map(|i| (i % 10 != 0).then(|| ms(i))).collect(),
            user_ms: (0..n).map(|i| Some(if i % 10 == 0 { 1_020.0 } else { ms(i) + 0.1 })).collect(),
            retransmits: (0..n).map(|i| u8::from(i % 10 == 0)).collect(),
        }
    }

    #[test]
    fn a_row_says_latency_loss_jitter_and_tail() {
        let row = row("a", ProbeKind::Handshake, samples(1_000), PERIOD, &[20.0; 50]);
        assert_eq!((row.latency_ms.n, row.loss.lost, row.loss.value_pct), (900, 100, Some(10.0)));
        assert!(row.latency_ms.p99.hi.unwrap() < 21.0, "{:?}", row.latency_ms.p99);
        assert_eq!((row.tail.label.as_str(), row.tail.basis.as_str()), ("loss_retransmit", "counters"));
        let pdv = row.jitter.pdv_ms;
        assert!((pdv.value.unwrap() - 0.45).abs() < 0.03, "{pdv:?}");
        assert!(pdv.lo <= pdv.value && pdv.value <= pdv.hi, "{pdv:?}");
        let step = row.jitter.successive_ms;
        assert!(step.lo <= step.value && step.value <= step.hi && step.lo > Some(0.0), "{step:?}");
        assert_eq!(row.jitter.probe_period_ms, 20.0);
        let user = row.user_latency_ms.unwrap().p50.value.unwrap();
        assert!((user - row.latency_ms.p50.value.unwrap() - 0.1).abs() < 1e-9);
    }

    #[test]
    fn nothing_measured_is_nothing_said() {
        let row = row("a", ProbeKind::Echo, SampleColumns::default(), PERIOD, &[]);
        assert_eq!((row.latency_ms.n, row.latency_ms.p50.value), (0, None));
        assert_eq!((row.jitter.pdv_ms, row.jitter.successive_ms), (Bounded::default(), Bounded::default()));
        assert_eq!((row.loss.value_pct, row.tail.label.as_str()), (None, "insufficient"));
        assert_eq!(row.user_latency_ms, None);
    }

    #[test]
    fn a_way_is_told_by_its_own_smallest_delay() {
        let delays = (0..100).map(|i| (i % 4 != 0).then(|| -5e6 + f64::from(i % 4))).collect();
        let lost: Vec<bool> = (0..100).map(|i| i % 4 == 0).collect();
        let way = way(&lost, delays);
        assert_eq!(way.loss.value_pct, Some(25.0));
        assert_eq!(way.above_smallest_ms.p50.value, Some(1.0));
        assert_eq!((way.delay_ms[0], way.delay_ms[1], way.delay_ms[3]), (None, Some(0.0), Some(2.0)));
        assert_eq!(super::way(&[], Vec::new()).above_smallest_ms.n, 0);
    }
}
