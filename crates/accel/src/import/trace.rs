//! The plain trace: `t_ms`, `rtt_ms` (null = lost), and perhaps `idle_rtt_ms` and `retransmits`.

use super::columns::UNCOUNTED;
use super::json::Numbers;
use super::{Columns, ImportError, Series};

/// One series of a trace.
pub(super) fn series(
    times: Numbers,
    rtts: Numbers,
    idle: Option<Numbers>,
    retransmits: Option<Numbers>,
) -> Result<Series, ImportError> {
    let counts = retransmits.map(|r| r.0).unwrap_or_default().into_iter().map(count).collect();
    let columns = Columns::from_vectors(times.0, rtts.0, counts)?;
    // A lost idle probe has no round trip to compare with.
    let idle_rtt_ms =
        idle.map(|i| i.0).unwrap_or_default().into_iter().filter(|rtt| *rtt != f64::INFINITY).collect();
    Ok(Series { name: String::new(), columns, idle_rtt_ms })
}

/// A count as a small whole number; `null` is no count.
fn count(count: f64) -> u8 {
    if count.is_finite() { count.clamp(0.0, f64::from(UNCOUNTED - 1)) as u8 } else { UNCOUNTED }
}
