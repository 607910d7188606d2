//! Step 3a: two or more routes. Compact modes of like shape between which the probes jump.

use super::body::quantile;
use super::stickiness::{STICKY_Z, runs};

/// The modes of a multi-route path.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Routes {
    /// The middle of each mode in ms, ascending.
    pub(super) medians_ms: Vec<f64>,
    /// The share of the probes in each.
    pub(super) shares: Vec<f64>,
}

/// Modes that are looked for, strays included.
const MAX_CLUSTERS: usize = 6;
/// A mode below this share is strays, not a route.
const MIN_SHARE: f64 = 0.06;
/// The empty range between two modes, in units of the wider one's spread (p90 to p10).
const MIN_GAP_SPREADS: f64 = 1.2;
const MIN_GAP_MS: f64 = 1.5;
/// Spreads of two routes differ by no more than this; those of an idle and a full queue do.
const LIKE_SHAPE: f64 = 4.0;
const LIKE_SHAPE_IF_SLOW: f64 = 3.0;
/// One change in the whole run may also be the start of a load.
const LIKE_SHAPE_IF_ONCE: f64 = 2.0;
/// Clock noise below which spreads are not compared, in ms.
const SPREAD_FLOOR_MS: f64 = 0.3;
/// Runs over expected runs: hashes alternate like coins, a queue's excursions do not.
const ALTERNATES: f64 = 0.6;
/// Samples between the modes at a change: a route changes at once, a queue rises through them.
const MAX_ON_THE_WAY: f64 = 0.25;

/// A range of the sorted samples.
#[derive(Clone, Copy)]
struct Mode {
    start: usize,
    end: usize,
}

/// The routes that the round trips show, if they show more than one.
pub(super) fn routes(in_time: &[f64], sorted: &[f64]) -> Option<Routes> {
    if sorted.len() < 2 {
        return None;
    }
    let sums = prefix_sums(sorted);
    let mut clusters = vec![Mode { start: 0, end: sorted.len() }];
    while clusters.len() < MAX_CLUSTERS {
        if !split_widest(&mut clusters, sorted, &sums) {
            return None;
        }
        let found = judge(&clusters, in_time, sorted);
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Splits the cluster with the largest gain in squared deviation, at the place of that gain; false when every
/// cluster is one value.
fn split_widest(clusters: &mut Vec<Mode>, sorted: &[f64], sums: &[f64]) -> bool {
    let best = clusters
        .iter()
        .enumerate()
        .filter_map(|(i, &mode)| best_split(mode, sorted, sums).map(|(at, gain)| (i, at, gain)))
        .max_by(|a, b| a.2.total_cmp(&b.2));
    let Some((i, at, _)) = best else { return false };
    let whole = clusters[i];
    clusters[i] = Mode { start: whole.start, end: at };
    clusters.insert(i + 1, Mode { start: at, end: whole.end });
    true
}

/// The split of one cluster that takes away most of its squared deviation (Fisher 1958).
fn best_split(mode: Mode, sorted: &[f64], sums: &[f64]) -> Option<(usize, f64)> {
    let sum = |from: usize, to: usize| sums[to] - sums[from];
    let total = sum(mode.start, mode.end);
    let n = (mode.end - mode.start) as f64;
    (mode.start + 1..mode.end)
        .filter(|&at| sorted[at] > sorted[at - 1])
        .map(|at| {
            let (low, high) = ((at - mode.start) as f64, (mode.end - at) as f64);
            let (below, above) = (sum(mode.start, at), sum(at, mode.end));
            (at, below * below / low + above * above / high - total * total / n)
        })
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

fn prefix_sums(sorted: &[f64]) -> Vec<f64> {
    let centre = sorted[sorted.len() / 2];
    let mut sums = vec![0.0];
    let mut sum = 0.0;
    for value in sorted {
        sum += value - centre;
        sums.push(sum);
    }
    sums
}

fn judge(clusters: &[Mode], in_time: &[f64], sorted: &[f64]) -> Option<Routes> {
    let n = sorted.len() as f64;
    let modes: Vec<&[f64]> = clusters
        .iter()
        .map(|mode| &sorted[mode.start..mode.end])
        .filter(|values| values.len() as f64 >= MIN_SHARE * n)
        .collect();
    if modes.len() < 2 || !modes.windows(2).all(|pair| apart(pair[0], pair[1])) {
        return None;
    }
    let fits = change_as_routes_do(&modes, in_time) && modes.iter().all(|mode| scatters(in_time, mode));
    fits.then(|| Routes {
        medians_ms: modes.iter().map(|mode| mode[mode.len() / 2]).collect(),
        shares: modes.iter().map(|mode| mode.len() as f64 / n).collect(),
    })
}

/// Whether the probes alternate as fast as a hash of their port makes them; or change slowly, but at once, between
/// modes that are all the more alike.
fn change_as_routes_do(modes: &[&[f64]], in_time: &[f64]) -> bool {
    let borders: Vec<f64> = modes.windows(2).map(|pair| border(pair[0], pair[1])).collect();
    let alternates = borders.iter().all(|&border| {
        let far: Vec<bool> = in_time.iter().map(|&rtt| rtt >= border).collect();
        runs(&far).ratio >= ALTERNATES
    });
    if alternates {
        return likeness(modes) <= LIKE_SHAPE;
    }
    let on_route = |rtt: f64| borders.iter().filter(|&&border| rtt >= border).count();
    let changes = in_time.windows(2).filter(|pair| on_route(pair[0]) != on_route(pair[1])).count();
    let allowed = if changes == 1 { LIKE_SHAPE_IF_ONCE } else { LIKE_SHAPE_IF_SLOW };
    likeness(modes) <= allowed && jumps_at_once(in_time, modes, on_route)
}

/// The widest mode's spread over the narrowest's.
fn likeness(modes: &[&[f64]]) -> f64 {
    let widths = || modes.iter().map(|mode| spread(mode).max(SPREAD_FLOOR_MS));
    widths().fold(0.0, f64::max) / widths().fold(f64::INFINITY, f64::min)
}

/// From the 10th to the 90th percentile, in ms.
fn spread(mode: &[f64]) -> f64 {
    quantile(mode, 0.9).unwrap_or(0.0) - quantile(mode, 0.1).unwrap_or(0.0)
}

/// Whether two modes leave a range between them that is nearly empty.
fn apart(lower: &[f64], upper: &[f64]) -> bool {
    let gap = quantile(upper, 0.05).unwrap_or(0.0) - quantile(lower, 0.95).unwrap_or(0.0);
    gap >= MIN_GAP_MS && gap >= MIN_GAP_SPREADS * spread(lower).max(spread(upper))
}

fn border(lower: &[f64], upper: &[f64]) -> f64 {
    f64::midpoint(quantile(lower, 0.95).unwrap_or(0.0), quantile(upper, 0.05).unwrap_or(0.0))
}

/// Whether the changes of route pass without samples on the way.
fn jumps_at_once(in_time: &[f64], modes: &[&[f64]], on_route: impl Fn(f64) -> usize) -> bool {
    let between = |rtt: f64| {
        modes.windows(2).any(|pair| {
            let highest_below = quantile(pair[0], 0.98).unwrap_or(0.0) + spread(pair[0]).max(SPREAD_FLOOR_MS);
            let lowest_above =
                quantile(pair[1], 0.02).unwrap_or(0.0) - 0.5 * spread(pair[1]).max(SPREAD_FLOOR_MS);
            rtt > highest_below && rtt < lowest_above
        })
    };
    let changes: Vec<_> = in_time.windows(2).filter(|pair| on_route(pair[0]) != on_route(pair[1])).collect();
    let on_the_way = changes.iter().filter(|pair| between(pair[0]) || between(pair[1])).count();
    on_the_way as f64 <= MAX_ON_THE_WAY * changes.len() as f64
}

/// Whether the round trips of one route scatter like noise: each apart from its neighbours, as a queue's do not.
fn scatters(in_time: &[f64], mode: &[f64]) -> bool {
    let (low, high) = (mode[0], mode[mode.len() - 1]);
    let median = mode[mode.len() / 2];
    let own: Vec<bool> =
        in_time.iter().filter(|rtt| (low..=high).contains(*rtt)).map(|&rtt| rtt > median).collect();
    runs(&own).z < STICKY_Z
}
