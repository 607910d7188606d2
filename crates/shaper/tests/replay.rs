//! `shaper replay` against the answers of another analyser, on real captures.
//!
//! The small ones are in `captures/`; a larger collection is taken from the folder that `ACCEL_PCAP_CASES` names, or
//! from `../shared/cases/pcaps` beside the repository. Both have an `INDEX.json`. Pure ACKs, repeated SYNs and damage
//! must agree exactly, medians within 5 %; where tshark is known to be wrong, `EXPLAINED` says why and what is right.

use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// File, figure, the right value, and why it is not the reference's.
const EXPLAINED: &[(&str, Figure, Option<f64>, &str)] = &[
    (
        "e-vlan-collisions.pcap",
        Figure::SynRetransmits,
        Some(0.0),
        "one conversation in three VLANs: three connections, not one with repeated SYNs",
    ),
    ("e-vlan-collisions.pcap", Figure::Handshake, Some(70.034), "each VLAN's SYN with its own ACK"),
    ("e-vlan-collisions.pcap", Figure::Rtt, Some(0.219), "with the SYN-ACKs of all three connections: n=18"),
    (
        "t-handshake-reorder.pcap",
        Figure::Handshake,
        None,
        "the SYN is stamped after the SYN-ACK that answers it: 34 us is no handshake",
    ),
    (
        "t-handshake-reorder.pcap",
        Figure::Rtt,
        Some(0.219),
        "n=6: with the ACK of the SYN-ACK (0.294 ms), which the reordered SYN hides from tshark",
    ),
    (
        "t-seq-wrap.pcap",
        Figure::Rtt,
        Some(0.011),
        "five of tshark's samples are ambiguous: four ACKs cover a re-cut retransmission, one answers a keep-alive",
    ),
    (
        "t-smb-ecn-keepalive.pcap",
        Figure::Rtt,
        Some(0.364),
        "23 of tshark's samples answer a keep-alive, six more cover a retransmission",
    ),
    (
        "i-v6-ext-tcp.pcap",
        Figure::Rtt,
        Some(14.135),
        "with the ACK of a SYN-ACK stamped out of order (13.1 ms) instead of a repeated ACK on a FIN (0.3 ms)",
    ),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    PureAcks,
    SynRetransmits,
    Rtt,
    Handshake,
}

impl Figure {
    const ALL: [Self; 4] = [Self::PureAcks, Self::SynRetransmits, Self::Rtt, Self::Handshake];

    /// The figure in our document and in the reference.
    const fn pointers(self) -> (&'static str, &'static str) {
        match self {
            Self::PureAcks => ("/pure_acks", "/pure_acks"),
            Self::SynRetransmits => ("/syn_retransmits", "/syn_retransmits"),
            Self::Rtt => ("/rtt/median_ms", "/data_ack_rtt/median_ms"),
            Self::Handshake => ("/handshake_rtt/median_ms", "/handshake_rtt/median_ms"),
        }
    }

    /// How far apart two values of it may be. The medians of a microsecond or two are the capture's resolution.
    fn agree(self, ours: Option<f64>, expected: Option<f64>, share: f64) -> bool {
        match (self, ours, expected) {
            (Self::PureAcks | Self::SynRetransmits, ours, expected) => {
                ours.unwrap_or(0.0) == expected.unwrap_or(0.0)
            }
            (_, Some(ours), Some(expected)) => (ours - expected).abs() <= (expected * share).max(0.001),
            (_, None, None) => true,
            _ => false,
        }
    }
}

struct Answer {
    text: String,
    exit_code: Option<i32>,
    stderr: String,
}

fn replay(arguments: &[&str]) -> Answer {
    let output = Command::new(env!("CARGO_BIN_EXE_shaper")).arg("replay").args(arguments).output().unwrap();
    Answer {
        text: String::from_utf8(output.stdout).unwrap(),
        exit_code: output.status.code(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures")
}

fn capture(name: &str) -> String {
    captures().join(name).display().to_string()
}

/// Compares every file that the folder's index lists; gives the complaints.
fn compare(folder: &Path) -> Vec<String> {
    let index: Value = serde_json::from_slice(&std::fs::read(folder.join("INDEX.json")).unwrap()).unwrap();
    let mut complaints = Vec::new();
    for case in index.as_array().unwrap() {
        let (file, reference) = (case["file"].as_str().unwrap(), &case["reference"]);
        let answer = replay(&["--json", &folder.join(file).display().to_string()]);
        let ours: Value = serde_json::from_str(&answer.text).unwrap();
        let is_damaged = reference["tshark_exit"] != 0;
        if answer.exit_code != Some(if is_damaged { 3 } else { 0 }) || ours["damage"].is_null() == is_damaged
        {
            complaints.push(format!("{file}: exit {:?}, damage {}", answer.exit_code, ours["damage"]));
        }
        let mut row = format!("{file:<26}");
        for figure in Figure::ALL {
            let (here, there) = figure.pointers();
            let value = |document: &Value, pointer| document.pointer(pointer).and_then(Value::as_f64);
            let (mine, theirs) = (value(&ours, here), value(reference, there));
            let _ = write!(row, " {figure:?} {} / {}", show(mine), show(theirs));
            let explained = EXPLAINED.iter().find(|(name, what, ..)| *name == file && *what == figure);
            let (expected, share) = match explained {
                Some((_, _, right, why)) => {
                    let _ = write!(row, " ({why})");
                    (*right, 0.003)
                }
                None => (theirs, 0.05),
            };
            if !figure.agree(mine, expected, share) {
                complaints.push(format!("{file}: {figure:?} is {mine:?}, not {expected:?}"));
            }
        }
        eprintln!("{row}");
    }
    complaints
}

fn show(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |number| ((number * 1e3).round() / 1e3).to_string())
}

#[test]
fn small_captures_give_the_reference_answers() {
    let complaints = compare(&captures());
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn the_larger_collection_gives_the_reference_answers() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases/pcaps");
    let folder = std::env::var_os("ACCEL_PCAP_CASES").map_or(beside, PathBuf::from);
    if !folder.join("INDEX.json").exists() {
        eprintln!("SKIPPED: no collection of captures; name its folder in ACCEL_PCAP_CASES");
        return;
    }
    let complaints = compare(&folder);
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn a_gzipped_capture_reads_like_the_plain_one() {
    let plain = capture("e-sll2-tls.pcap");
    let packed = std::env::temp_dir().join(format!("replay-test-{}.pcap.gz", std::process::id()));
    let mut encoder =
        flate2::write::GzEncoder::new(std::fs::File::create(&packed).unwrap(), flate2::Compression::best());
    encoder.write_all(&std::fs::read(&plain).unwrap()).unwrap();
    encoder.finish().unwrap();
    let answer = replay(&["--json", &packed.display().to_string()]);
    std::fs::remove_file(&packed).unwrap();
    assert_eq!(answer.text, replay(&["--json", &plain]).text);
    assert_eq!(answer.exit_code, Some(0), "{}", answer.stderr);
}

#[test]
fn exit_codes_tell_no_capture_from_a_damaged_one() {
    let missing = replay(&["/nonexistent.pcap"]);
    assert_eq!(missing.exit_code, Some(1));
    assert!(missing.stderr.contains("/nonexistent.pcap"), "{}", missing.stderr);
    let text_file = replay(&[&capture("README.md")]);
    assert_eq!(text_file.exit_code, Some(1));
    assert!(text_file.stderr.contains("neither pcap nor pcapng"), "{}", text_file.stderr);
    assert_eq!(replay(&[]).exit_code, Some(2));

    let bytes = std::fs::read(capture("i-padded-tcp.pcap")).unwrap();
    let cut = std::env::temp_dir().join(format!("replay-test-{}.pcap", std::process::id()));
    std::fs::write(&cut, &bytes[..bytes.len() - 1]).unwrap();
    let answer = replay(&[&cut.display().to_string()]);
    std::fs::remove_file(&cut).unwrap();
    assert_eq!(answer.exit_code, Some(3));
    assert!(answer.text.contains("packets    24 in"), "{}", answer.text);
    assert!(
        answer.text.contains("damage     at byte 2223: the file ends within a record"),
        "{}",
        answer.text
    );
}

#[test]
fn the_engine_answers_beside_the_analysis() {
    let file = capture("e-vlan-collisions.pcap");
    let answer = replay(&[&file, "--rate-mbps", "0.1", "--from", "192.150.187.43", "--json"]);
    let document: Value = serde_json::from_str(&answer.text).unwrap();
    let shaping = &document["shaping"];
    assert_eq!(shaping["rate_mbps"], 0.1);
    assert_eq!(shaping["packets"], 21);
    let outcome = ["sent", "dropped_aqm", "dropped_overflow"].map(|key| shaping[key].as_u64().unwrap());
    assert_eq!(outcome.iter().sum::<u64>(), 21);
    assert_eq!(shaping["flows"].as_array().map(Vec::len), Some(3));
    // Four full packets at once, three times: at 100 kbit/s the last one waits hundreds of milliseconds.
    assert!(shaping["delay"]["max_ms"].as_f64() > Some(300.0), "{shaping}");
    assert!(replay(&[&file, "--rate-mbps", "0.1"]).text.contains("the packets from 141.142.228.5"));
    assert_eq!(replay(&[&file, "--from", "198.18.0.1"]).exit_code, Some(2), "--from needs --rate-mbps");
}
