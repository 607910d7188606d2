//! The whole table at once: step-down max |T| over sign flips (Westfall and Young 1993, algorithm 2.8).

use super::coin::mix;

/// Up to this many rounds every sign flip is made; beyond, as many random ones.
const EXACT_ROUNDS: u32 = 16;

/// Adjusted p of each endpoint; `rounds` holds one row of differences for each pair of rounds.
///
/// Each flip turns whole rounds, so that endpoints that go together stay together: correlated endpoints cost
/// less than Holm would charge. Rows are cut to the shortest; a missing value counts as no difference.
pub fn step_down_max_t(rounds: &[Vec<f64>]) -> Vec<f64> {
    let endpoints = rounds.iter().map(Vec::len).min().unwrap_or(0);
    let columns: Vec<Column> = (0..endpoints).map(|i| Column::new(rounds, i)).collect();
    let observed: Vec<f64> = columns.iter().map(|column| column.t(0)).collect();
    let mut order: Vec<usize> = (0..endpoints).collect();
    order.sort_by(|&a, &b| observed[b].total_cmp(&observed[a]));
    let flips = flips(rounds.len() as u32);
    let mut reached = vec![0_usize; endpoints];
    for &flip in &flips {
        // From the weakest endpoint up, so that each meets the maximum over itself and all weaker ones.
        let mut largest = 0.0_f64;
        for &i in order.iter().rev() {
            largest = largest.max(columns[i].t(flip));
            // The observed signs reach themselves in spite of rounding.
            reached[i] += usize::from(largest >= observed[i] * (1.0 - 1e-9));
        }
    }
    let mut adjusted = vec![1.0; endpoints];
    let mut largest = 0.0_f64;
    for &i in &order {
        largest = largest.max(reached[i] as f64 / flips.len() as f64);
        adjusted[i] = largest;
    }
    adjusted
}

/// Bit sets of rounds whose sign is turned. Turning all of them changes no |T|, so that one round stays as it is.
fn flips(rounds: u32) -> Vec<u128> {
    let free = rounds.saturating_sub(1);
    let count = 1_u64 << free.min(EXACT_ROUNDS - 1);
    if free < EXACT_ROUNDS {
        return (0..count).map(u128::from).collect();
    }
    let random = |i: u64| u128::from(mix(2 * i)) << 64 | u128::from(mix(2 * i + 1));
    // The observed signs are one of the flips (Phipson and Smyth 2010).
    std::iter::once(0).chain((1..count).map(random)).collect()
}

/// The differences of one endpoint.
struct Column {
    values: Vec<f64>,
    /// The sum of squares, which no flip changes.
    squares: f64,
}

impl Column {
    fn new(rounds: &[Vec<f64>], endpoint: usize) -> Self {
        let values: Vec<f64> =
            rounds.iter().map(|row| row[endpoint]).map(|v| if v.is_finite() { v } else { 0.0 }).collect();
        let squares = values.iter().map(|v| v * v).sum();
        Self { values, squares }
    }

    /// Student's |t| of the mean, with the signs of a flip; infinite when all are the same, 0 when all are 0.
    fn t(&self, flip: u128) -> f64 {
        let n = self.values.len() as f64;
        let signed =
            self.values.iter().enumerate().map(|(i, v)| if i < 128 && flip >> i & 1 == 1 { -v } else { *v });
        let sum: f64 = signed.sum();
        let variance = (self.squares - sum * sum / n).max(0.0) / (n - 1.0);
        if sum == 0.0 { 0.0 } else { sum.abs() / (n * variance).sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_endpoint_is_the_plain_permutation_test() {
        let rounds: Vec<Vec<f64>> = [3.0, 2.0, 5.0, 1.0, 4.0, 2.5].iter().map(|&d| vec![d]).collect();
        assert_eq!(step_down_max_t(&rounds), [2.0 / 64.0]);
    }

    #[test]
    fn copies_of_an_endpoint_cost_nothing() {
        let one: Vec<Vec<f64>> = [3.0, -2.0, 5.0, 1.0, 4.0, 2.5, 0.3].iter().map(|&d| vec![d]).collect();
        let five: Vec<Vec<f64>> = one.iter().map(|row| vec![row[0]; 5]).collect();
        assert_eq!(step_down_max_t(&five), vec![step_down_max_t(&one)[0]; 5]);
    }

    #[test]
    fn many_rounds_and_none_are_bounded_work() {
        assert!(step_down_max_t(&[]).is_empty());
        let many: Vec<Vec<f64>> =
            (0..140).map(|i| vec![1.0 + f64::from(i % 7), f64::from(i % 2) - 0.5]).collect();
        let p = step_down_max_t(&many);
        assert!(p[0] < 0.001 && p[1] > 0.2, "{p:?}");
    }
}
