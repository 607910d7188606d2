//! Readers of foreign files: each format as its tool writes it, and everything that can be wrong with a file.

use accel::import::{Format, ImportError, Imported, read};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use std::io::Write;

fn text(source: &str) -> Result<Imported, ImportError> {
    read(source.as_bytes())
}

fn rtts(source: &str) -> (Format, Vec<f64>) {
    let imported = text(source).unwrap();
    (imported.format, imported.series[0].columns.rtt_ms().to_vec())
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

const LOST: f64 = f64::INFINITY;

#[test]
fn a_trace_with_losses_counts_and_idle() {
    let imported = text(
        r#"{"label":"x","t_ms":[1,2,3],"rtt_ms":[5.5,null,7],"idle_rtt_ms":[5,null,6],"retransmits":[0,0,2],"more":{}}"#,
    )
    .unwrap();
    let series = &imported.series[0];
    assert_eq!((imported.format, series.columns.rtt_ms()), (Format::Trace, &[5.5, LOST, 7.0][..]));
    assert_eq!((series.idle_rtt_ms.as_slice(), series.columns.retransmitted()), (&[5.0, 6.0][..], Some(1)));
    let probes = series.columns.probes(1);
    assert_eq!((probes[2].at_ms, probes[2].retransmits, probes[1].rtt_ms), (2.0, Some(2), None));
}

#[test]
fn csv_with_and_without_header_counts_and_seconds() {
    assert_eq!(rtts("t_s,rtt_ms\n0.1,5\n0.2,\n0.3,6.5\n"), (Format::Table, vec![5.0, LOST, 6.5]));
    assert_eq!(rtts("# made by hand\r\n0.1,5\r\n0.2,6\r\n"), (Format::Table, vec![5.0, 6.0]));
    let counted = text("t_ms,retransmits,rtt_ms\n100,0,5\n200,1,1005\n").unwrap();
    let columns = &counted.series[0].columns;
    assert_eq!((columns.retransmitted(), columns.interval_ms()), (Some(1), Some(100.0)));
    let partly = text("t_s,rtt_ms,retransmits\n1,5,0\n2,,\n3,1005,1\n4,6,\n").unwrap();
    let counts: Vec<_> = partly.series[0].columns.probes(1).iter().map(|p| p.retransmits).collect();
    assert_eq!(counts, [Some(0), None, Some(1), None]);
}

#[test]
fn ping_of_linux_with_holes_and_duplicates() {
    let output = "PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n\
        64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=12.3 ms\n\
        64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=12.9 ms (DUP!)\n\
        64 bytes from 192.0.2.1: icmp_seq=4 ttl=57 time=13 ms\n\
        no answer yet for icmp_seq=5\n\
        64 bytes from 192.0.2.1: icmp_seq=6 ttl=57 time=11.8 ms\n\n\
        --- 192.0.2.1 ping statistics ---\n6 packets transmitted, 3 received, 50% packet loss, time 5008ms\n";
    assert_eq!(rtts(output), (Format::Ping, vec![12.3, LOST, LOST, 13.0, LOST, 11.8]));
}

#[test]
fn ping_with_stamps_knows_its_interval() {
    let output = "[1700000000.100000] 64 bytes from h: icmp_seq=1 ttl=57 time=100 ms\n\
        [1700000000.300000] 64 bytes from h: icmp_seq=2 ttl=57 time=100 ms\n";
    let imported = text(output).unwrap();
    let interval = imported.series[0].columns.interval_ms().unwrap();
    assert!((interval - 200.0).abs() < 0.01, "{interval}");
    let without =
        text("64 bytes from h: icmp_seq=1 time=1 ms\n64 bytes from h: icmp_seq=2 time=1 ms\n").unwrap();
    assert_eq!(without.series[0].columns.interval_ms(), None, "nothing in the file says it");
}

#[test]
fn ping_goes_on_after_65535_and_an_answer_may_come_after_all() {
    let output = "64 bytes from h: icmp_seq=65534 time=1 ms\n64 bytes from h: icmp_seq=65535 time=2 ms\n\
        no answer yet for icmp_seq=0\n64 bytes from h: icmp_seq=0 time=1500 ms\n64 bytes from h: icmp_seq=1 time=3 ms\n";
    assert_eq!(rtts(output).1, [1.0, 2.0, 1500.0, 3.0]);
}

#[test]
fn ping_of_windows_macos_and_busybox() {
    let windows = "Reply from 192.0.2.1: bytes=32 time=12ms TTL=57\r\nRequest timed out.\r\n\
        Reply from 192.0.2.1: bytes=32 time<1ms TTL=57\r\n";
    assert_eq!(rtts(windows), (Format::Ping, vec![12.0, LOST, 1.0]));
    let macos = "64 bytes from 192.0.2.1: icmp_seq=0 ttl=57 time=12.345 ms\nRequest timeout for icmp_seq 1\n\
        64 bytes from 192.0.2.1: icmp_seq=2 ttl=57 time=11 ms\n";
    assert_eq!(rtts(macos).1, [12.345, LOST, 11.0]);
    assert_eq!(rtts("64 bytes from 192.0.2.1: seq=0 ttl=64 time=0.055 ms\n").1, [0.055]);
}

#[test]
fn fping_has_a_series_for_each_host() {
    let output = "a : [0], 64 bytes, 12.3 ms (12.3 avg, 0% loss)\nb : [0], 64 bytes, 1.5 ms (1.5 avg, 0% loss)\n\
        a : [1], timed out (12.3 avg, 50% loss)\nb : [2], 64 bytes, 2 ms (1.7 avg, 33% loss)\n\n\
        a : xmt/rcv/%loss = 2/1/50%, min/avg/max = 12.3/12.3/12.3\n";
    let imported = text(output).unwrap();
    let series: Vec<_> = imported.series.iter().map(|s| (s.name.as_str(), s.columns.rtt_ms())).collect();
    assert_eq!(series, [("a", &[12.3, LOST][..]), ("b", &[1.5, LOST, 2.0][..])]);
    let columns = "host.example : 12.3 - 12.5\n";
    assert_eq!(rtts(columns), (Format::Fping, vec![12.3, LOST, 12.5]));
}

#[test]
fn irtt_with_words_and_truth_values() {
    let document = r#"{"version":{},"round_trips":[
        {"seqno":0,"lost":false,"timestamps":{"client":{"receive":{"wall":9},"send":{"wall":1000,"monotonic":1000000}},"server":{}},"delay":{"receive":1,"rtt":12500000,"send":2},"ipdv":{}},
        {"seqno":1,"lost":"true_up","timestamps":{"client":{"receive":{},"send":{"wall":2000,"monotonic":21000000}}},"delay":{},"ipdv":{}},
        {"seqno":2,"lost":"false","timestamps":{"client":{"send":{"monotonic":41000000}}},"delay":{"rtt":13000000}}]}"#;
    assert_eq!(rtts(document), (Format::Irtt, vec![12.5, LOST, 13.0]));
    assert_eq!(read(&gzip(document.as_bytes())[..]).unwrap(), text(document).unwrap());
}

#[test]
fn flent_prefers_raw_values_and_sees_holes() {
    let document = r#"{"version":4,"x_values":[0,0.2],"results":{"Ping (ms) ICMP":[1,null],"TCP upload":[5,null]},
        "raw_values":{"TCP upload":[{"t":1,"val":{"odd":1}}],"Ping (ms) ICMP":[
        {"t":100.0,"val":10.0,"seq":1},{"t":100.4,"val":12.0,"seq":3}]},"metadata":{"NAME":"rrul_be"}}"#;
    let imported = read(&gzip(document.as_bytes())[..]).unwrap();
    assert_eq!((imported.format, imported.series.len()), (Format::Flent, 1));
    assert_eq!(imported.series[0].columns.rtt_ms(), [10.0, LOST, 12.0]);
    let binned =
        r#"{"version":4,"x_values":[0,0.2,0.4],"results":{"Ping (ms) ICMP":[1,null,2]},"raw_values":{}}"#;
    assert_eq!(rtts(binned).1, [1.0, 2.0]);
}

#[test]
fn a_run_of_ours_has_a_series_per_phase_with_the_idle_phase_beside_the_loaded() {
    let document = r#"{"schema_version":1,"command":"lab","phases":[
        {"arm":"off","phase":"idle","samples":{"t_ms":[1,2],"kernel_ms":[20,21],"user_ms":[20.5,21.5],"retransmits":[0,0]}},
        {"arm":"off","phase":"upload","samples":{"t_ms":[1,2,3],"kernel_ms":[520,null,null],"user_ms":[521,530,null],"retransmits":[0,1,2]}}]}"#;
    let imported = text(document).unwrap();
    assert_eq!(imported.format, Format::Run);
    let upload = &imported.series[1];
    assert_eq!((upload.name.as_str(), upload.columns.rtt_ms()), ("upload off", &[520.0, 530.0, LOST][..]));
    assert_eq!((upload.idle_rtt_ms.as_slice(), upload.columns.retransmitted()), (&[20.0, 21.0][..], Some(2)));
    assert!(imported.series[0].idle_rtt_ms.is_empty());
}

/// Each bad file, whether it is its form or its samples, and a word that the one line has to hold.
const BAD: &[(&str, bool, &str)] = &[
    ("", false, "empty"),
    ("  \n\n", false, "empty"),
    ("hello world\n", false, "neither"),
    ("[1,2,3]", false, "list"),
    (r#"{"t_ms":[1,2],"rtt_ms":[5,"#, false, "cut"),
    (r#"{"t_ms":[1,2],"rtt_ms":[5,6]} x"#, false, "trailing"),
    (r#"{"t_ms":[1],"t_ms":[1],"rtt_ms":[5]}"#, false, "duplicate"),
    (r#"{"t_ms":[1,2],"rtt_ms":[5,NaN]}"#, false, "line 1"),
    (r#"{"t_ms":[1,2],"rtt_ms":[5,"six"]}"#, false, "string"),
    (r#"{"t_ms":[1,2],"rtt_ms":[5,1e999]}"#, false, "range"),
    (r#"{"other":1}"#, false, "none of the keys"),
    (r#"{"schema_version":999,"phases":[]}"#, false, "schema 999"),
    (r#"{"version":5,"raw_values":{"Ping (ms) ICMP":[]}}"#, false, "version 5"),
    (r#"{"raw_values":{}}"#, false, "version"),
    ("t_s,rtt_ms\n0.1,5\n0.2", false, "line 3: cut"),
    ("t_s,rtt_ms\n0.1,x\n", false, "line 2"),
    ("t_s,rtt_ms,retransmits\n0.1,5,-1\n", false, "line 2"),
    (r#"{"t_ms":[1,2],"rtt_ms":[5]}"#, true, "different length"),
    (r#"{"t_ms":[],"rtt_ms":[]}"#, true, "no samples"),
    (r#"{"t_ms":[1,2],"rtt_ms":[5,-6]}"#, true, "sample 2: negative"),
    (r#"{"t_ms":[2,1],"rtt_ms":[5,6]}"#, true, "not in time order"),
    (r#"{"t_ms":[1,1],"rtt_ms":[5,6]}"#, true, "duplicate"),
    (r#"{"t_ms":[1,null],"rtt_ms":[5,6]}"#, true, "sample 2"),
    (r#"{"t_ms":[1,2],"rtt_ms":[5,6],"idle_rtt_ms":[-1]}"#, true, "idle"),
    (r#"{"schema_version":1,"phases":[]}"#, true, "no samples"),
    (r#"{"version":4,"raw_values":{}}"#, true, "Ping (ms)"),
    (r#"{"round_trips":[]}"#, true, "no samples"),
    ("t_s,rtt_ms\n0.1,NaN\n", true, "line 2"),
    ("t_s,rtt_ms\n0.1,-3\n", true, "negative"),
    ("t_s,rtt_ms\n0.2,5\n0.1,5\n", true, "line 3"),
    ("t_s,rtt_ms\n0.2,5\n0.2,5\n", true, "duplicate"),
    ("t_s,rtt_ms\n", true, "no samples"),
];

#[test]
fn every_bad_file_gets_one_clear_line() {
    for (source, of_samples, word) in BAD {
        let error = text(source).unwrap_err();
        let line = error.to_string();
        assert!(line.contains(word) && !line.contains('\n'), "{source:?}: {line}");
        assert_eq!(matches!(error, ImportError::Samples(_)), *of_samples, "{source:?}: {line}");
    }
}

#[test]
fn a_cut_or_damaged_archive_is_said_to_be_so() {
    let mut zipped = gzip(b"t_s,rtt_ms\n0.1,5\n0.2,6\n0.3,7\n");
    let cut = read(&zipped[..zipped.len() - 9]).unwrap_err();
    assert!(matches!(cut, ImportError::Format(_)), "{cut}");
    let middle = zipped.len() / 2;
    zipped[middle] ^= 0xFF;
    assert!(matches!(read(&zipped[..]).unwrap_err(), ImportError::Format(_)));
}

#[test]
fn a_line_without_end_is_refused_before_it_fills_the_memory() {
    let endless = format!("t_s,rtt_ms\n0.1,{}", "9".repeat(1 << 20));
    let error = text(&endless).unwrap_err().to_string();
    assert!(error.contains("line 2 is longer"), "{error}");
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    assert!(text(&format!("{{\"x\":{}", "[".repeat(1 << 20))).is_err());
}

/// Valid files of every kind, to be damaged.
const GOOD: [&str; 7] = [
    r#"{"t_ms":[1,2,3],"rtt_ms":[5.5,null,7],"idle_rtt_ms":[5,6],"retransmits":[0,0,2]}"#,
    "t_s,rtt_ms,retransmits\n0.1,5,0\n0.2,,1\n0.3,6.5,0\n",
    "[1700000000.1] 64 bytes from h: icmp_seq=1 ttl=57 time=12.3 ms\nno answer yet for icmp_seq=2\n64 bytes from h: icmp_seq=9 time=13 ms\n",
    "a : [0], 64 bytes, 12.3 ms (12.3 avg, 0% loss)\n[170.5] a : [7], timed out\nb : 1 - 2\n",
    r#"{"round_trips":[{"lost":"true_up","timestamps":{"client":{"send":{"monotonic":1}}},"delay":{}},{"lost":false,"timestamps":{"client":{"send":{"wall":2}}},"delay":{"rtt":5}}]}"#,
    r#"{"version":4,"x_values":[0,1],"results":{"Ping (ms) A":[1,null]},"raw_values":{"Ping (ms) A":[{"t":1,"val":2,"seq":1},{"t":2,"val":2,"seq":9}]}}"#,
    r#"{"schema_version":1,"phases":[{"arm":"on","phase":"idle","samples":{"t_ms":[1],"kernel_ms":[1],"user_ms":[1],"retransmits":[0]}}]}"#,
];

/// Whatever is read is fit for the statistics.
fn check(result: Result<Imported, ImportError>) {
    match result {
        Ok(imported) => {
            assert!(!imported.series.is_empty());
            for series in imported.series {
                assert!(!series.columns.is_empty());
                assert!(series.columns.rtt_ms().iter().all(|rtt| *rtt >= 0.0));
                assert!(series.columns.probes(1).windows(2).all(|pair| pair[0].at_ms < pair[1].at_ms));
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        check(read(&bytes[..]));
    }

    #[test]
    fn damaged_files_are_read_or_refused(
        which in 0..GOOD.len(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..6),
        zipped in any::<bool>(),
    ) {
        let mut bytes = GOOD[which].as_bytes().to_vec();
        if zipped {
            bytes = gzip(&bytes);
        }
        for (place, byte, kind) in damage {
            let at = place.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => drop(bytes.remove(at)),
                _ => bytes.truncate(at + 1),
            }
            if bytes.is_empty() {
                break;
            }
        }
        check(read(&bytes[..]));
    }

    #[test]
    fn lines_that_look_like_ping_and_fping(
        lines in proptest::collection::vec((0..5_usize, any::<u32>(), -10.0..5000.0_f64), 0..60),
    ) {
        let output: String = lines
            .iter()
            .map(|(kind, n, rtt)| match kind {
                0 => format!("64 bytes from h: icmp_seq={} ttl=5 time={rtt:.3} ms\n", n % 70_000),
                1 => format!("[{}.5] 64 bytes from h: icmp_seq={} ttl=5 time={rtt:.3} ms\n", n % 100, n % 50),
                2 => format!("no answer yet for icmp_seq={}\n", n % 50),
                3 => format!("h{} : [{n}], 64 bytes, {rtt:.2} ms (1 avg, 0% loss)\n", n % 3),
                _ => format!("h : [{}], timed out (1 avg, 0% loss)\n", n % 50),
            })
            .collect();
        check(text(&output));
    }

    #[test]
    fn csv_reads_back_what_was_written(
        rows in proptest::collection::vec((1..1000_u32, proptest::option::of(0.0..1e5_f64)), 1..200),
    ) {
        let mut at = 0.0;
        let mut table = String::from("t_s,rtt_ms\n");
        for (step, rtt) in &rows {
            at += f64::from(*step) / 1000.0;
            table += &format!("{at},{}\n", rtt.map_or(String::new(), |rtt| rtt.to_string()));
        }
        let expected: Vec<f64> = rows.iter().map(|(_, rtt)| rtt.unwrap_or(LOST)).collect();
        prop_assert_eq!(rtts(&table).1, expected);
    }
}
