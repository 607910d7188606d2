//! The run document and the table, byte for byte, for a fixed made-up run. To accept a wanted change, run with
//! ACCEL_UPDATE_GOLDEN=1 and read the difference; a change of the JSON's meaning also raises SCHEMA_VERSION.

use accel::render::{json, text};
use accel::run::{
    Arm, DirectionRecord, InstrumentRecord, LineRecord, Machine, Phase, PhaseRecord, Run, SCHEMA_VERSION,
    SampleColumns, Settings, ShaperRecord, Spread, Versions,
};
use accel::statement::{Clock, latency, probe_loss, round};
use accel::verdict::{Outcome, verdict};
use serde_json::Value;
use std::path::PathBuf;

/// `n` probes spread evenly from `from_ms` up by `by_ms`, in an order without memory (a Weyl sequence).
fn samples(n: usize, from_ms: f64, by_ms: f64) -> SampleColumns {
    let golden_ratio = 0.618_033_988_749_895;
    let ms = |i: usize| round(from_ms + by_ms * (i as f64 * golden_ratio).fract());
    SampleColumns {
        t_ms: (0..n).map(|i| 10.0 * i as f64 + 5.0).collect(),
        kernel_ms: (0..n).map(|i| Some(ms(i))).collect(),
        user_ms: (0..n).map(|i| Some(round(ms(i) + 0.06))).collect(),
        retransmits: vec![0; n],
    }
}

fn phase(arm: Arm, phase: Phase, samples: SampleColumns, up_mbps: f64, down_mbps: f64) -> PhaseRecord {
    let small = Spread { p50: 0.01, p99: 0.08, max: 0.31 };
    let loss = probe_loss(&samples);
    PhaseRecord {
        arm,
        phase,
        latency_ms: latency(&samples, Clock::Kernel),
        user_latency_ms: latency(&samples, Clock::User),
        up_mbps: phase.loads_up().then_some(up_mbps),
        down_mbps: phase.loads_down().then_some(down_mbps),
        probe_loss_pct: loss.value_pct,
        probe_loss: loss,
        bulk_retransmit_pct: (phase != Phase::Idle).then_some(1.25),
        started_ms: 100.0,
        measured_ms: 7_000.0,
        instrument: InstrumentRecord {
            start_lateness_ms: small,
            largest_loop_gap_ms: 0.4,
            connect_call_ms: small,
            user_minus_kernel_ms: Some(small),
            control_ms: None,
            missed: 0,
            late: 0,
            failed: 0,
            scheduler: "normal".to_owned(),
        },
        line: LineRecord {
            up: DirectionRecord {
                delivered_packets: 700,
                delivered_bytes: 42_000,
                ..DirectionRecord::default()
            },
            down: DirectionRecord::default(),
            relay_lateness_ms: Spread { p50: 0.01, p99: 0.05, max: 0.2 },
        },
        samples,
    }
}

/// An unshaped FIFO of 500 ms against a shaped one, with one probe sent again and one never answered.
fn run() -> Run {
    run_of(600)
}

/// The same with `n` probes in each full phase; at least 30.
fn run_of(n: usize) -> Run {
    let mut lossy = samples(n, 350.0, 150.0);
    (lossy.retransmits[3], lossy.user_ms[3], lossy.kernel_ms[3]) = (1, Some(1_433.25), None);
    (lossy.retransmits[20], lossy.user_ms[20], lossy.kernel_ms[20]) = (2, None, None);
    let phases = vec![
        phase(Arm::Off, Phase::Idle, samples(n, 20.02, 0.05), 0.0, 0.0),
        phase(Arm::Off, Phase::Upload, lossy, 19.1, 0.0),
        phase(Arm::Off, Phase::Download, samples(n, 300.0, 190.0), 0.0, 95.2),
        phase(Arm::Off, Phase::Bidirectional, samples(30, 700.0, 299.0), 19.0, 60.4),
        phase(Arm::On, Phase::Idle, samples(n, 20.04, 0.06), 0.0, 0.0),
        phase(Arm::On, Phase::Upload, samples(n, 20.1, 1.4), 18.1, 0.0),
        phase(Arm::On, Phase::Download, samples(n, 300.0, 190.0), 0.0, 95.1),
        phase(Arm::On, Phase::Bidirectional, samples(15, 310.0, 180.0), 18.0, 94.9),
    ];
    let mut run = Run {
        schema_version: SCHEMA_VERSION,
        command: "lab".to_owned(),
        started_unix_ms: 1_767_225_600_000,
        duration_s: 82.5,
        versions: Versions {
            accel: "0.1.0".to_owned(),
            shaper: Some("shaper 0.1.0".to_owned()),
            kernel: "6.12.0".to_owned(),
        },
        machine: Machine { cores: 2, clock: "CLOCK_MONOTONIC".to_owned(), clock_resolution_ns: 1 },
        settings: settings(),
        phases,
        shaper: Some(ShaperRecord {
            ready: "ready interface=up0 rate_mbps=19".to_owned(),
            status: vec!["sent_packets=1200".to_owned()],
        }),
        verdict: None,
        warnings: vec!["a made-up run".to_owned()],
    };
    run.verdict = verdict(&run);
    run
}

fn settings() -> Settings {
    Settings {
        up_mbps: 20.0,
        down_mbps: 100.0,
        rtt_ms: 20.0,
        buffer_ms: 500.0,
        loss_pct: 0.0,
        jitter_ms: 0.0,
        flows: 4,
        congestion_control: "cubic".to_owned(),
        shaper: "both".to_owned(),
        shaper_rate_mbps: Some(19.0),
        seed: 1,
        quick: false,
        probe_period_ms: 10.0,
        probe_jitter_pct: 50.0,
        probe_timeout_ms: 2_040.0,
        probe_load_pct: 0.656,
        ramp_ms: 2_500.0,
        loaded_ms: 7_000.0,
        idle_ms: 6_000.0,
    }
}

fn golden(name: &str, got: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("ACCEL_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, got).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(got == expected, "{name} changed; the new text is:\n{got}");
}

#[test]
fn the_run_document_keeps_its_layout() {
    golden("run.json", &json::render(&run_of(30)).unwrap());
}

#[test]
fn a_run_document_is_read_back_as_it_was() {
    let run = run();
    let again: Run = serde_json::from_str(&json::render(&run).unwrap()).unwrap();
    assert_eq!(again, run);
}

#[test]
fn the_statements_follow_from_the_samples_of_the_document() {
    let mut read: Run = serde_json::from_str(&json::render(&run()).unwrap()).unwrap();
    for phase in &read.phases {
        assert_eq!(latency(&phase.samples, Clock::Kernel), phase.latency_ms);
        assert_eq!(probe_loss(&phase.samples), phase.probe_loss);
    }
    let stored = read.verdict.take();
    assert_eq!(verdict(&read), stored);
}

#[test]
fn the_verdict_names_the_cure_and_no_other_difference() {
    let verdict = verdict(&run()).unwrap();
    let outcome = |phase, percentile: &str| {
        verdict.comparisons.iter().find(|c| c.phase == phase && c.percentile == percentile).unwrap().outcome
    };
    assert_eq!(outcome(Phase::Upload, "p50"), Outcome::Lower);
    assert_eq!(outcome(Phase::Upload, "p99"), Outcome::Lower);
    assert_eq!(outcome(Phase::Download, "p95"), Outcome::NoDifferenceShown);
    assert_eq!(
        outcome(Phase::Idle, "p50"),
        Outcome::NotCredible,
        "0.02 ms is below what the line itself adds"
    );
    assert_eq!(verdict.cost.up_goodput_lost_pct, Some(5.236));
}

#[test]
fn one_arm_alone_has_no_verdict() {
    let mut run = run();
    run.phases.retain(|p| p.arm == Arm::Off);
    assert_eq!(verdict(&run), None);
}

#[test]
fn the_document_never_holds_nan_or_infinity() {
    let mut run = run();
    run.duration_s = f64::NAN;
    run.phases[0].up_mbps = Some(f64::INFINITY);
    let document: Value = serde_json::from_str(&json::render(&run).unwrap()).unwrap();
    assert_eq!(document["duration_s"], Value::Null);
    assert_eq!(document["phases"][0]["up_mbps"], Value::Null);
}

#[test]
fn the_table_at_80_and_at_200_columns() {
    for width in [80, 200] {
        let text = text::render(&run(), text::Style { width, colour: false });
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= width, "{widest} columns:\n{text}");
        golden(&format!("table-{width}.txt"), &text);
    }
}

#[test]
fn a_quick_run_prints_no_p99_and_colours_only_where_wanted() {
    let mut run = run();
    run.settings.quick = true;
    let plain = text::render(&run, text::Style { width: 80, colour: false });
    assert!(!plain.contains("p99 ms"), "{plain}");
    assert!(!plain.contains('\u{1b}'));
    assert!(text::render(&run, text::Style { width: 80, colour: true }).contains('\u{1b}'));
}
