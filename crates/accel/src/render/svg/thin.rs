//! Fewer marks where many samples share a place; a sample that stands alone always keeps its mark.

use std::collections::BTreeSet;

/// Most marks of one kind in one plot.
const MAX_MARKS: usize = 3_000;

/// Keeps the first sample of every cell of a grid over the plot. The finest grid has cells of one nominal pixel; it gets
/// coarser until few enough are left, so that no sample is further than a cell from a mark.
pub(super) fn thin<T>(samples: &[T], place: impl Fn(&T) -> (f64, f64)) -> Vec<&T> {
    const FINEST: f64 = 400.0;
    const COARSEST: f64 = 25.0;
    let mut cells = FINEST;
    loop {
        let kept = one_per_cell(samples, cells, &place);
        // A grid of 25 by 25 cells has fewer than `MAX_MARKS`.
        if kept.len() <= MAX_MARKS || cells <= COARSEST {
            return kept;
        }
        cells /= 2.0;
    }
}

fn one_per_cell<'a, T>(samples: &'a [T], cells: f64, place: &impl Fn(&T) -> (f64, f64)) -> Vec<&'a T> {
    let mut taken = BTreeSet::new();
    let cell = |sample: &T| {
        let (x, y) = place(sample);
        ((x * cells) as u32, (y * cells) as u32)
    };
    samples.iter().filter(|sample| taken.insert(cell(sample))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_is_thinned_and_the_lone_sample_stays() {
        let mut samples: Vec<(f64, f64)> =
            (0..200_000).map(|i| (f64::from(i) / 200_000.0, f64::from(i * 7 % 1_000) / 4_000.0)).collect();
        samples.push((0.5, 0.99));
        let kept = thin(&samples, |s| *s);
        assert!(kept.len() <= MAX_MARKS);
        assert!(kept.contains(&&(0.5, 0.99)));
        assert_eq!(thin(&samples[..2], |s| *s).len(), 1, "two samples within one pixel");
    }
}
