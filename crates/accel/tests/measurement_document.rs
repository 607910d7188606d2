//! The run document of `accel measure` and its text, byte for byte, for a fixed made-up run. To accept a wanted change,
//! run with ACCEL_UPDATE_GOLDEN=1 and read the difference; a change of the JSON's meaning also raises SCHEMA_VERSION.

use accel::measurement::{
    EchoInstrument, Goodput, LoadSetting, Measurement, NameKind, NameRow, PhaseRecord, ProbeKind, Row,
    Settings, TargetSetting, Ways, grades, percentiles, row, way,
};
use accel::render::{json, text};
use accel::run::{InstrumentRecord, Machine, Phase, SCHEMA_VERSION, SampleColumns, Spread, Versions};
use accel::statement::round;
use std::path::PathBuf;
use std::time::Duration;

const PERIOD: Duration = Duration::from_millis(25);

/// Between 0 and 1, spread evenly and without memory (a Weyl sequence).
fn weyl(i: usize) -> f64 {
    (i as f64 * 0.618_033_988_749_895).fract()
}

/// `n` probes from `from_ms` up by `by_ms`; the first of every `lost_of` is lost.
fn samples(n: usize, from_ms: f64, by_ms: f64, lost_of: usize) -> SampleColumns {
    let answered = |i: usize| (!i.is_multiple_of(lost_of)).then(|| round(from_ms + by_ms * weyl(i)));
    SampleColumns {
        t_ms: (0..n).map(|i| 25.0 * i as f64 + 12.5).collect(),
        kernel_ms: (0..n).map(answered).collect(),
        user_ms: (0..n).map(|i| answered(i).map(|ms| round(ms + 0.05))).collect(),
        retransmits: vec![0; n],
    }
}

fn datagrams(n: usize, from_ms: f64) -> Row {
    let lost: Vec<bool> = (0..n).map(|i: usize| i.is_multiple_of(25)).collect();
    let delays = |by: f64| (0..n).map(|i| (!i.is_multiple_of(25)).then(|| by * weyl(i))).collect();
    let ways = Ways { ip_bytes: 92, up: way(&lost, delays(2.0)), down: way(&[], delays(0.5)), unknown: 1 };
    Row {
        ways: Some(ways),
        ..row("far:24470", ProbeKind::DatagramSmall, samples(n, from_ms, 2.0, 25), PERIOD, &[])
    }
}

fn phase(phase: Phase, n: usize, from_ms: f64, by_ms: f64) -> PhaseRecord {
    let small = Spread { p50: 0.01, p99: 0.08, max: 0.31 };
    let handshakes = |name, ms| row(name, ProbeKind::Handshake, samples(n, ms, by_ms, 1_000), PERIOD, &[]);
    let rate = |mbps| Goodput {
        mbps,
        lo_mbps: Some(round(mbps - 0.4)),
        hi_mbps: Some(round(mbps + 0.4)),
        blocks: 10,
    };
    PhaseRecord {
        phase,
        started_ms: 100.0,
        measured_ms: 15_000.0,
        cut_short: (phase == Phase::Upload).then(|| "interrupted".to_owned()),
        up: phase.loads_up().then(|| rate(9.5)),
        down: phase.loads_down().then(|| rate(28.8)),
        bulk_retransmit_pct: (phase != Phase::Idle).then_some(0.54),
        data_mb: if phase == Phase::Idle { 0.0 } else { 22.5 },
        rows: vec![
            handshakes("far:24470", from_ms),
            row(
                "far:24470",
                ProbeKind::EchoTwoWrites,
                samples(n / 4, from_ms + 60.0, 5.0, 1_000),
                4 * PERIOD,
                &[],
            ),
            datagrams(n, from_ms),
            handshakes("a.long.name.example", from_ms + 3.0),
            handshakes("gateway", 0.4),
        ],
        names: vec![NameRow {
            kind: NameKind::Uncached,
            name: "*.domain.example".to_owned(),
            latency_ms: percentiles(&(0..30).map(|i| 40.0 + 9.0 * weyl(i)).collect::<Vec<_>>()),
            failed: 1,
            failure: Some("Temporary failure in name resolution".to_owned()),
            missed: 2,
            t_ms: vec![250.0],
            took_ms: vec![None],
        }],
        instrument: InstrumentRecord {
            start_lateness_ms: small,
            largest_loop_gap_ms: 0.4,
            connect_call_ms: small,
            user_minus_kernel_ms: Some(small),
            control_ms: Some(small),
            missed: 0,
            late: 0,
            failed: 0,
            scheduler: "normal".to_owned(),
        },
        echo_instrument: Some(EchoInstrument { start_lateness_ms: small, missed: 0 }),
    }
}

fn run(n: usize) -> Measurement {
    let phases = vec![
        phase(Phase::Idle, n, 20.1, 0.2),
        phase(Phase::Download, n, 30.0, 70.0),
        phase(Phase::Upload, n, 25.0, 20.0),
    ];
    Measurement {
        schema_version: SCHEMA_VERSION,
        command: "measure".to_owned(),
        started_unix_ms: 1_767_225_600_000,
        duration_s: 75.5,
        versions: Versions { accel: "0.1.0".to_owned(), shaper: None, kernel: "6.12.0".to_owned() },
        machine: Machine { cores: 2, clock: "CLOCK_MONOTONIC".to_owned(), clock_resolution_ns: 1 },
        settings: settings(),
        grade: grades(&phases),
        phases,
        interrupted: true,
        warnings: vec!["not measured: bidirectional".to_owned()],
    }
}

fn settings() -> Settings {
    let target = |name: &str, address: &str, others, own_server| TargetSetting {
        name: name.to_owned(),
        address: address.to_owned(),
        others,
        own_server,
    };
    Settings {
        targets: vec![
            target("far:24470", "198.19.0.2:24470", 0, true),
            target("a.long.name.example", "[fd00::2]:443", 3, false),
            target("gateway", "198.18.0.1:80", 0, false),
        ],
        load: Some(LoadSetting {
            server: "far:24470".to_owned(),
            address: "198.19.0.2:24470".to_owned(),
            flows: 4,
            congestion_control: "cubic".to_owned(),
        }),
        probe_period_ms: 25.0,
        probe_load_kbps: 209.92,
        probe_jitter_pct: 50.0,
        probe_timeout_ms: 3_000.0,
        seed: 1,
        idle_ms: 15_000.0,
        ramp_ms: 4_000.0,
        loaded_ms: 15_000.0,
        max_data_mb: 2_000.0,
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
fn the_document_keeps_its_layout_and_is_read_back_as_it_was() {
    let run = run(40);
    let document = json::render(&run).unwrap();
    golden("measurement.json", &document);
    assert_eq!(serde_json::from_str::<Measurement>(&document).unwrap(), run);
}

#[test]
fn the_statements_follow_from_the_samples_of_the_document() {
    let document = json::render(&run(600)).unwrap();
    let read: Measurement = serde_json::from_str(&document).unwrap();
    for row_read in read.phases.iter().flat_map(|phase| &phase.rows) {
        let period = Duration::from_secs_f64(row_read.jitter.probe_period_ms / 1e3);
        let again = row(&row_read.target, row_read.kind, row_read.samples.clone(), period, &[]);
        assert_eq!(
            (&again.latency_ms, &again.loss, &again.jitter),
            (&row_read.latency_ms, &row_read.loss, &row_read.jitter)
        );
    }
    assert_eq!(grades(&read.phases), read.grade);
}

#[test]
fn the_text_at_80_columns() {
    let text = text::measure::render(&run(600), text::Style { width: 80, colour: false });
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 80, "{widest} columns:\n{text}");
    golden("measurement.txt", &text);
}

#[test]
fn the_document_never_holds_nan_or_infinity() {
    let mut run = run(40);
    run.phases[0].data_mb = f64::NAN;
    run.phases[0].rows[0].jitter.pdv_ms.value = Some(f64::INFINITY);
    let document: serde_json::Value = serde_json::from_str(&json::render(&run).unwrap()).unwrap();
    assert!(document["phases"][0]["data_mb"].is_null());
    assert!(document["phases"][0]["rows"][0]["jitter"]["pdv_ms"]["value"].is_null());
}
