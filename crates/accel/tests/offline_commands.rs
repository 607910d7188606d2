//! `accel classify`, `summary` and `compare` as a user runs them: output, one line on stderr, exit code.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder for the files of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("accel-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn accel(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_accel")).args(arguments).output().unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = accel(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(arguments: &[&str]) -> String {
    let output = accel(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The labelled traces lie beside the classifier.
fn trace(name: &str) -> String {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stats/tests/cases");
    cases.join(name).to_str().unwrap().to_owned()
}

/// 20 ms and a little, with every 25th probe lost and a clock that ticks 50 ms.
fn table(shift_ms: f64) -> String {
    let rows = (0..500_u32).map(|i| {
        let noise = f64::from(i.wrapping_mul(2_654_435_761) >> 16) / 65_536.0;
        let rtt = if i % 25 == 7 { String::new() } else { format!("{:.3}", 20.0 + shift_ms + noise) };
        format!("{:.2},{rtt}\n", f64::from(i) * 0.05)
    });
    std::iter::once("t_s,rtt_ms\n".to_owned()).chain(rows).collect()
}

#[test]
fn a_loss_tail_is_named_with_its_gap_and_what_would_not_help() {
    let answer = json(&["classify", &trace("013_loss_retransmit.json"), "--json"]);
    assert_eq!((&answer["label"], &answer["retransmits"]), (&"loss_retransmit".into(), &28.into()));
    assert_eq!((&answer["rto_ms"], &answer["basis"]), (&250.0.into(), &"shape".into()));
    let fraction = &answer["fraction"];
    assert!(fraction["lo"].as_f64() < fraction["value"].as_f64());
    assert!(fraction["value"].as_f64() < fraction["hi"].as_f64());
    let text = text(&["classify", &trace("013_loss_retransmit.json")]);
    assert!(text.contains("[EMPTY 46-292ms]") && text.contains("LOSS-RETRANSMIT"), "{text}");
    assert!(text.contains("does not help: egress shaping"), "{text}");
}

#[test]
fn a_summary_has_percentiles_with_intervals_loss_and_jitter() {
    let folder = Folder::new("summary");
    let file = folder.file("a.csv", &table(0.0));
    let answer = json(&["summary", &file, "--json"]);
    assert_eq!(answer["n"], 500);
    assert_eq!(answer["loss"]["lost"], 20);
    let p50 = &answer["p50"];
    assert!(
        p50["lo"].as_f64() <= p50["value"].as_f64() && p50["value"].as_f64() <= p50["hi"].as_f64(),
        "{p50}"
    );
    assert!(answer["p99"]["value"].is_null(), "the 99th percentile of 4 % loss is a lost probe");
    assert!((answer["jitter"]["probe_interval_ms"].as_f64().unwrap() - 50.0).abs() < 1e-6);
    assert!(answer["jitter"]["mean_absolute_successive_difference_ms"].as_f64().unwrap() > 0.1);
    assert!(text(&["summary", &file]).contains("p50"));
}

#[test]
fn two_single_runs_get_no_verdict() {
    let folder = Folder::new("compare");
    let (a, b) = (folder.file("a.csv", &table(0.0)), folder.file("b.csv", &table(3.0)));
    let answer = json(&["compare", &a, &b, "--json"]);
    assert_eq!(answer["verdict"], "descriptive_only");
    assert!((answer["p50"]["difference"].as_f64().unwrap() - 3.0).abs() < 0.01);
    assert!(answer["p50"]["lo"].as_f64().unwrap() < 3.0 && answer["p50"]["hi"].as_f64().unwrap() > 3.0);
    assert!(text(&["compare", &a, &b]).contains("cannot separate the tweak from drift"));
}

#[test]
fn several_series_are_listed_and_one_can_be_chosen() {
    let folder = Folder::new("series");
    let file = folder.file("f.txt", "a : 1 2 3\nb : 4 - 6\n");
    let both = json(&["summary", &file, "--json"]);
    assert_eq!((&both["format"], both["series"].as_array().unwrap().len()), (&"fping".into(), 2));
    assert_eq!(json(&["classify", &file, "--series", "b", "--json"])["lost"], 1);
    let unknown = accel(&["classify", &file, "--series", "c"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("\"a\", \"b\""));
}

#[test]
fn every_bad_file_ends_in_one_line_and_a_documented_code() {
    let folder = Folder::new("bad");
    let cases = [
        ("cut.json", r#"{"t_ms":[1,2],"rtt_ms":[5,"#, 6),
        ("strange.bin", "\u{1}\u{2}\u{3}", 6),
        ("future.json", r#"{"schema_version":99,"phases":[]}"#, 6),
        ("negative.csv", "t_s,rtt_ms\n0.1,-5\n", 7),
        ("nan.csv", "t_s,rtt_ms\n0.1,nan\n", 7),
        ("unsorted.csv", "t_s,rtt_ms\n0.2,5\n0.1,5\n", 7),
        ("twice.csv", "t_s,rtt_ms\n0.2,5\n0.2,5\n", 7),
        ("none.csv", "t_s,rtt_ms\n", 7),
    ];
    for (name, content, code) in cases {
        let file = folder.file(name, content);
        for arguments in [&["classify", &file][..], &["summary", &file, "--json"], &["compare", &file, &file]]
        {
            let output = accel(arguments);
            let line = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(code), "{arguments:?}: {line}");
            assert!(output.stdout.is_empty() && line.lines().count() == 1 && line.contains(name), "{line}");
        }
    }
    let missing = accel(&["classify", folder.0.join("missing").to_str().unwrap()]);
    assert_eq!(missing.status.code(), Some(6));
    assert_eq!(accel(&["summary", folder.0.to_str().unwrap()]).status.code(), Some(6));
}
