//! The distribution in one line: `430 samples @ 25-50ms ... [EMPTY 75-325ms] ... 17 samples @ 300-350ms`.

use stats::Gap;

/// Empty ranges beside the retransmission gap are worth a mark from this share of the whole range on.
const WIDE_SHARE: f64 = 0.2;
/// No range narrower than this is worth a mark.
const MIN_WIDTH_MS: f64 = 10.0;
/// Clusters drawn at most.
const MAX_CLUSTERS: usize = 4;

/// Draws the clusters with the empty ranges between them. A gap that was found by the classifier is always drawn.
pub(super) fn strip(rtt_ms: &[f64], gap: Option<Gap>) -> String {
    let mut sorted: Vec<f64> = rtt_ms.iter().copied().filter(|rtt| rtt.is_finite()).collect();
    let lost = rtt_ms.len() - sorted.len();
    sorted.sort_by(f64::total_cmp);
    let mut text = clusters(&sorted, gap);
    if lost > 0 {
        text += &format!("{}{lost} lost", if sorted.is_empty() { "" } else { " ... " });
    }
    text
}

fn clusters(sorted: &[f64], gap: Option<Gap>) -> String {
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return String::new() };
    let range = last - first;
    let mut splits: Vec<usize> = (1..sorted.len())
        .filter(|&i| sorted[i] - sorted[i - 1] > (WIDE_SHARE * range).max(MIN_WIDTH_MS))
        .collect();
    // Widest first, the classifier's own before all.
    let own =
        gap.map(|gap| sorted.partition_point(|&rtt| rtt < gap.to_ms)).filter(|&i| 0 < i && i < sorted.len());
    splits.retain(|&i| Some(i) != own);
    splits.sort_by(|&a, &b| (sorted[b] - sorted[b - 1]).total_cmp(&(sorted[a] - sorted[a - 1])));
    splits.splice(0..0, own);
    splits.truncate(MAX_CLUSTERS - 1);
    splits.sort_unstable();
    let mut text = String::new();
    let mut start = 0;
    for end in splits.into_iter().chain([sorted.len()]) {
        if start > 0 {
            text += &format!(" ... [EMPTY {:.0}-{:.0}ms] ... ", sorted[start - 1], sorted[start]);
        }
        let plural = if end - start == 1 { "" } else { "s" };
        text += &format!("{} sample{plural} @ {:.0}-{:.0}ms", end - start, sorted[start], sorted[end - 1]);
        start = end;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_the_gap_and_the_lost() {
        let mut rtts: Vec<f64> = (0..430).map(|i| 25.0 + f64::from(i % 26)).collect();
        rtts.extend((0..17).map(|i| 300.0 + f64::from(i)));
        rtts.push(f64::INFINITY);
        let gap = Some(Gap { from_ms: 50.0, to_ms: 300.0 });
        let expected = "430 samples @ 25-50ms ... [EMPTY 50-300ms] ... 17 samples @ 300-316ms ... 1 lost";
        assert_eq!(strip(&rtts, gap), expected);
        assert_eq!(strip(&[], None), "");
        assert_eq!(strip(&[f64::INFINITY; 3], None), "3 lost");
        assert_eq!(strip(&[5.0; 3], None), "3 samples @ 5-5ms");
    }
}
