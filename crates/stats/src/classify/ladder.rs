//! Step 2a: the timers by which systems send a lost handshake again.

/// How the timeout grows from one attempt to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// Each wait is twice the last (RFC 6298 section 5.5).
    Doubling,
    /// The first waits are equal: 1, 1, 1, 1, 1, 2, 4 s in Linux since 6.5.
    Linear,
}

impl Backoff {
    /// The word for it in run documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Doubling => "doubling",
            Self::Linear => "linear",
        }
    }
}

/// One hypothesis about the timer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ladder {
    pub(super) rto_ms: f64,
    pub(super) backoff: Backoff,
    /// Mean delay by which the timer fires late, in ms.
    pub(super) late_ms: f64,
    /// Prior probability; all hypotheses together give 1.
    pub(super) prior: f64,
}

/// Losses in a row that are looked for.
pub(super) const MAX_LOSSES: u32 = 4;

/// Timers in use: minimum RTO of Linux (200), of other stacks (250, 300), initial RTO of RFC 6298 (1 s) and of
/// RFC 1122 (3 s); with the range in which a measured one may lie and the step of the search, all in ms.
const TIMERS: [(f64, f64, f64, f64); 5] = [
    (200.0, 200.0, 230.0, 5.0),
    (250.0, 235.0, 265.0, 5.0),
    (300.0, 290.0, 345.0, 5.0),
    (1000.0, 980.0, 1060.0, 10.0),
    (3000.0, 2950.0, 3150.0, 25.0),
];
/// A timer wheel of 4 ms ticks (250 Hz), and one as coarse as the second scale allows.
const TICK_MS: f64 = 4.0;
const COARSE_MS: f64 = 16.0;
const COARSE_SHARE: f64 = 0.035;

impl Ladder {
    /// What `losses` lost handshakes add, in ms.
    pub(super) fn delay_ms(&self, losses: u32) -> f64 {
        match self.backoff {
            Backoff::Linear => self.rto_ms * f64::from(losses),
            Backoff::Doubling => self.rto_ms * (2_f64.powi(losses as i32) - 1.0),
        }
    }

    /// Every hypothesis; half of the prior lies on the nominal timers.
    pub(super) fn all() -> Vec<Self> {
        TIMERS.iter().flat_map(|&timer| of_timer(timer)).collect()
    }
}

fn of_timer((nominal, low, high, step): (f64, f64, f64, f64)) -> Vec<Ladder> {
    let steps = ((high - low) / step).round() as u32;
    let each = 0.5 / TIMERS.len() as f64;
    let mut timeouts = vec![(nominal, each)];
    timeouts.extend((0..=steps).map(|i| (low + step * f64::from(i), each / f64::from(steps + 1))));
    let backoffs: &[Backoff] =
        if nominal == 1000.0 { &[Backoff::Doubling, Backoff::Linear] } else { &[Backoff::Doubling] };
    let late = [TICK_MS, COARSE_MS.max(COARSE_SHARE * nominal)];
    let choices = (backoffs.len() * late.len()) as f64;
    let mut all = Vec::new();
    for (rto_ms, prior) in timeouts {
        for &backoff in backoffs {
            all.extend(late.map(|late_ms| Ladder { rto_ms, backoff, late_ms, prior: prior / choices }));
        }
    }
    all
}

/// The timeout by probes known to be sent again once: how far their median lies above the body's, rounded to a
/// nominal timer where one fires as late as that. Both sorted.
pub(super) fn timeout_of(once: &[f64], body: &[f64]) -> Option<f64> {
    let typical = *once.get(once.len() / 2)? - *body.get(body.len() / 2)?;
    let nominal = TIMERS.iter().map(|timer| timer.0).find(|&nominal| {
        let late = typical - nominal;
        (-0.5 * TICK_MS..=COARSE_MS.max(COARSE_SHARE * nominal) * 1.5).contains(&late)
    });
    Some(nominal.unwrap_or(typical)).filter(|timeout| *timeout > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_priors_add_up_to_one() {
        let total: f64 = Ladder::all().iter().map(|ladder| ladder.prior).sum();
        assert!((total - 1.0).abs() < 1e-9, "{total}");
    }

    #[test]
    fn doubling_and_linear_waits_add_up() {
        let ladder = |backoff| Ladder { rto_ms: 1000.0, backoff, late_ms: 4.0, prior: 1.0 };
        let delays = |backoff| [1, 2, 3].map(|losses| ladder(backoff).delay_ms(losses));
        assert_eq!(delays(Backoff::Doubling), [1000.0, 3000.0, 7000.0]);
        assert_eq!(delays(Backoff::Linear), [1000.0, 2000.0, 3000.0]);
    }

    #[test]
    fn a_timeout_by_counters_is_rounded_to_a_timer_that_fires_late() {
        let body = [20.0, 20.5, 21.0];
        assert_eq!(timeout_of(&[1021.0, 1040.0, 1050.0], &body), Some(1000.0));
        assert_eq!(timeout_of(&[620.5], &body), Some(600.0), "no known timer: as measured");
        assert_eq!((timeout_of(&[], &body), timeout_of(&[5.0], &body)), (None, None));
    }
}
