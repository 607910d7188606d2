//! From samples to statements: what one phase says about latency and loss.

use crate::run::{Latency, LossRecord, PercentileRecord, SampleColumns};
use stats::{Percentile, Series};
use units::Ratio;

/// Whose clock a latency is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The kernel's RTT of the socket, the program's own time where there is none.
    Kernel,
    /// The program's own time.
    User,
}

/// The latency of the probes whose SYN was answered at the first attempt: a SYN that was sent again says
/// something about loss and nothing about the queue.
pub fn latency(samples: &SampleColumns, clock: Clock) -> Latency {
    let values: Vec<f64> = (0..samples.t_ms.len())
        .filter(|&i| samples.retransmits[i] == 0)
        .filter_map(|i| {
            let user = samples.user_ms[i]?;
            match clock {
                Clock::Kernel => Some(samples.kernel_ms[i].unwrap_or(user)),
                Clock::User => Some(user),
            }
        })
        .filter(|ms| ms.is_finite())
        .collect();
    let n = values.len();
    let series = Series::new(values).expect("only finite values were kept");
    let at = |percent: f64| {
        let p = Ratio::from_percent(percent).expect("a percentage between 0 and 100");
        record(&series.percentile(p))
    };
    Latency { p50: at(50.0), p95: at(95.0), p99: at(99.0), n }
}

/// The share of probes whose SYN was sent again or never answered.
pub fn probe_loss(samples: &SampleColumns) -> LossRecord {
    let lost: Vec<bool> = samples
        .user_ms
        .iter()
        .zip(&samples.retransmits)
        .map(|(user, &again)| user.is_none() || again > 0)
        .collect();
    loss_record(&stats::loss(&lost))
}

/// The loss share with its interval, in percent, as run documents hold it.
pub fn loss_record(loss: &stats::Loss) -> LossRecord {
    let percent = |share: Option<f64>| share.map(|s| round(100.0 * s));
    LossRecord {
        value_pct: percent(loss.share),
        lo_pct: percent(loss.lo),
        hi_pct: percent(loss.hi),
        n: loss.n,
        lost: loss.lost,
        bursts: loss.bursts,
        n_eff: round(loss.n_eff),
        grade: loss.grade.as_str().to_owned(),
    }
}

/// To a thousandth, the resolution of the kernel's RTT: more digits would only fill the document.
pub fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Milliseconds in four or five digits: two decimals below 100 ms, one below 1000 ms.
pub fn ms_text(value: f64) -> String {
    let decimals = match value {
        ..100.0 => 2,
        ..1000.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A rate in Mbit/s as it is printed everywhere: two decimals below ten, so that 0.26 does not read as 0.3.
pub fn mbps_text(value: f64) -> String {
    if value < 9.995 { format!("{value:.2}") } else { format!("{value:.1}") }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 probes at 20.00 to 20.99 ms, of which number 10 was sent again and number 50 never answered.
    fn samples() -> SampleColumns {
        let ms = |i: usize| 20.0 + (i * 37 % 100) as f64 / 100.0;
        let mut samples = SampleColumns {
            t_ms: (0..100).map(|i| f64::from(i) * 10.0).collect(),
            kernel_ms: (0..100).map(|i| Some(ms(i))).collect(),
            user_ms: (0..100).map(|i| Some(ms(i) + 0.25)).collect(),
            retransmits: vec![0; 100],
        };
        (samples.retransmits[10], samples.kernel_ms[10], samples.user_ms[10]) =
            (1, Some(20.0), Some(1_020.0));
        (samples.retransmits[50], samples.kernel_ms[50], samples.user_ms[50]) = (2, None, None);
        samples
    }

    #[test]
    fn a_retransmitted_probe_is_loss_and_not_latency() {
        let latency = latency(&samples(), Clock::User);
        assert_eq!(latency.n, 98);
        assert!(latency.p99.value.unwrap() < 22.0, "{latency:?}");
        let loss = probe_loss(&samples());
        assert_eq!((loss.n, loss.lost, loss.bursts, loss.value_pct), (100, 2, 2, Some(2.0)));
        assert_eq!(loss.grade, "few events");
    }

    #[test]
    fn the_kernels_clock_decides_and_the_users_stands_in() {
        let mut samples = samples();
        let kernel = latency(&samples, Clock::Kernel).p50.value.unwrap();
        let user = latency(&samples, Clock::User).p50.value.unwrap();
        assert!((user - kernel - 0.25).abs() < 1e-9, "{user} {kernel}");
        samples.kernel_ms.fill(None);
        assert_eq!(latency(&samples, Clock::Kernel), latency(&samples, Clock::User));
    }

    #[test]
    fn no_samples_no_numbers() {
        let nothing = SampleColumns::default();
        let latency = latency(&nothing, Clock::Kernel);
        assert_eq!((latency.n, latency.p50.value, latency.p50.grade.as_str()), (0, None, "insufficient"));
        assert_eq!(probe_loss(&nothing).value_pct, None);
    }
}
