//! Reproduces the reference vectors of the method: an independent implementation's figures on ten latency
//! series and five loss series.

use serde_json::Value;
use stats::{Series, loss};
use units::Ratio;

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors.json")).unwrap()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("{key} is a list"))
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
fn percentiles() {
    let vectors = vectors();
    let mut checked = 0;
    for case in list(&vectors, "percentile") {
        let samples = list(case, "x").iter().map(|v| v.as_f64().unwrap_or(f64::INFINITY)).collect();
        let series = Series::new(samples).unwrap();
        for (p, expected) in case["out"].as_object().unwrap() {
            let got = series.percentile(Ratio::new(p.parse().unwrap()).unwrap());
            let place = format!("{} at {p}: {got:?} against {expected}", case["name"]);
            assert!(agree(got.value, &expected["q"]), "{place}");
            assert!(agree(got.lo, &expected["lo"]), "{place}");
            assert!(agree(got.hi, &expected["hi"]), "{place}");
            assert!(agree(Some(got.n_eff), &expected["n_eff"]), "{place}");
            assert_eq!(got.grade.as_str(), expected["grade"], "{place}");
            checked += 1;
        }
    }
    assert_eq!(checked, 40);
}

#[test]
fn losses() {
    let vectors = vectors();
    for case in list(&vectors, "loss") {
        let lost: Vec<bool> = list(case, "lost").iter().map(|v| v == 1).collect();
        let (got, expected) = (loss(&lost), &case["out"]);
        assert!(agree(got.share, &expected["p"]), "{got:?} against {expected}");
        assert!(agree(got.lo, &expected["lo"]), "{got:?} against {expected}");
        assert!(agree(got.hi, &expected["hi"]), "{got:?} against {expected}");
        assert!(agree(Some(got.n_eff), &expected["n_eff"]), "{got:?} against {expected}");
        assert_eq!(got.bursts, expected["bursts"], "{expected}");
        assert_eq!(got.grade.as_str(), expected["grade"], "{got:?}");
    }
    assert_eq!(list(&vectors, "loss").len(), 5);
}
