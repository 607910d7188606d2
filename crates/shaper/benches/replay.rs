//! `shaper replay` against `tcpdump -r` on the same generated capture: the ratio of their times, at most 2.
//!
//! `cargo bench -p shaper --bench replay`; needs tcpdump. Each program runs five times, in turns; the shortest counts.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const CONNECTIONS: u16 = 200;
/// Data segments of each connection; every second one is acknowledged.
const SEGMENTS: u32 = 2_000;
const SERVER_PORT: u16 = 443;
/// As much as a capture usually keeps of a packet's start.
const CAPTURED: usize = 128;
const PAYLOAD: u16 = 1_448;

fn main() {
    let file = std::env::temp_dir().join(format!("replay-bench-{}.pcap", std::process::id()));
    let packets = write_capture(&file);
    let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
    for _ in 0..5 {
        ours = ours.min(time(Command::new(env!("CARGO_BIN_EXE_shaper")).arg("replay").arg(&file)));
        theirs = theirs.min(time(Command::new("tcpdump").arg("-nr").arg(&file)));
    }
    let _ = std::fs::remove_file(&file);
    if theirs == Duration::MAX {
        eprintln!("SKIPPED: tcpdump cannot be run");
        return;
    }
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("{packets} packets: replay takes {ratio:.3} times as long as tcpdump -nr");
    assert!(ratio <= 2.0, "the limit is 2");
}

/// Wall time of a run, its output thrown away; [`Duration::MAX`] when it fails.
fn time(command: &mut Command) -> Duration {
    let start = platform::clock::now();
    match command.stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => platform::clock::now() - start,
        _ => Duration::MAX,
    }
}

/// Interleaved bulk transfers, one segment of each connection after the other, 10 us apart.
fn write_capture(path: &Path) -> u64 {
    let mut file = BufWriter::new(File::create(path).expect("the temporary folder is writable"));
    let header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, CAPTURED as u32, 1];
    let mut write = |bytes: &[u8]| file.write_all(bytes).expect("the temporary folder has room");
    header.iter().for_each(|word| write(&word.to_le_bytes()));
    let mut packets = 0_u64;
    for segment in 0..SEGMENTS {
        for port in 1..=CONNECTIONS {
            let next = (segment + 1) * u32::from(PAYLOAD);
            let data = frame(port, SERVER_PORT, segment * u32::from(PAYLOAD), 1, PAYLOAD);
            let ack = frame(SERVER_PORT, port, 1, next, 0);
            let both = [data, ack];
            for frame in both.iter().take(1 + segment as usize % 2) {
                let micros = packets * 10;
                let captured = frame.len().min(CAPTURED);
                let record = [micros / 1_000_000, micros % 1_000_000, captured as u64, frame.len() as u64];
                record.iter().for_each(|&word| write(&(word as u32).to_le_bytes()));
                write(&frame[..captured]);
                packets += 1;
            }
        }
    }
    packets
}

/// An Ethernet frame with a TCP segment that has a timestamp option.
fn frame(source_port: u16, destination_port: u16, seq: u32, ack: u32, payload: u16) -> Vec<u8> {
    let up = destination_port == SERVER_PORT;
    let ends = if up { [[198, 18, 0, 1], [198, 18, 0, 2]] } else { [[198, 18, 0, 2], [198, 18, 0, 1]] };
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend((52 + payload).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend(ends.concat());
    frame.extend([source_port.to_be_bytes(), destination_port.to_be_bytes()].concat());
    frame.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
    frame.extend([0x80, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1]);
    frame.resize(frame.len() + usize::from(payload), 0);
    frame
}
