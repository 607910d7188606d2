//! Reproduces the reference vectors of the comparison: an independent implementation's figures.

use serde_json::Value;
use stats::compare::{Floor, compare, signed_rank_p, step_down_max_t};

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// Equal to the six decimals that the vectors carry; `null` equals a missing value.
fn agree(got: Option<f64>, expected: &Value) -> bool {
    match (got, expected.as_f64()) {
        (Some(got), Some(expected)) => (got - expected).abs() <= 2e-6,
        (None, None) => expected.is_null(),
        _ => false,
    }
}

#[test]
fn estimates_with_intervals_and_p() {
    let vectors = vectors();
    let cases = vectors["walsh"].as_array().unwrap();
    for case in cases {
        let differences = numbers(&case["d"]);
        let got = compare(&differences, &Floor::default());
        let expected = &case["out"];
        for (got, place) in [(got.estimate, 0), (got.lo, 1), (got.hi, 2)] {
            assert!(agree(got, &expected[place]), "{got:?} against {expected}");
        }
        assert!(agree(Some(signed_rank_p(&differences)), &case["p"]), "{} against {}", got.p, case["p"]);
    }
    assert_eq!(cases.len(), 6);
}

#[test]
fn verdicts_against_the_floor() {
    let vectors = vectors();
    let cases = vectors["verdict"].as_array().unwrap();
    for case in cases {
        let got = compare(&numbers(&case["d"]), &Floor::new(&numbers(&case["c"]), &[], 0.0));
        let expected = &case["out"];
        assert!(agree(got.floor, &expected["floor"]), "{got:?} against {expected}");
        assert!(agree(got.bound, &expected["bound"]), "{got:?} against {expected}");
        assert_eq!(got.change.as_str(), expected["verdict"], "{got:?}");
    }
    assert_eq!(cases.len(), 6);
}

#[test]
fn whole_tables() {
    let vectors = vectors();
    for case in vectors["maxt"].as_array().unwrap() {
        let rounds: Vec<Vec<f64>> = case["D"].as_array().unwrap().iter().map(numbers).collect();
        let got = step_down_max_t(&rounds);
        let expected = case["out"].as_array().unwrap();
        assert_eq!(got.len(), expected.len());
        assert!(
            got.iter().zip(expected).all(|(&got, e)| agree(Some(got), e)),
            "{got:?} against {expected:?}"
        );
    }
}
