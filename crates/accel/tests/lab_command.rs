//! The `accel` program from outside: whole runs as the current user, what it refuses, and how it ends.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Set to 1 where a test that cannot run must fail.
const REQUIRE: &str = "ACCEL_REQUIRE_NETNS";
/// "This system does not allow the emulated line", as `accel --help` documents it.
const FORBIDDEN: i32 = 5;

fn accel(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_accel"));
    command.args(arguments).stdin(Stdio::null()).env("NO_COLOR", "1");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder of this test's own that goes away with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("accel-test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Whether the system let the run take place; a loud line on stderr, or a failure where required, if not.
fn was_possible(test: &str, output: &Output) -> bool {
    if output.status.code() != Some(FORBIDDEN) {
        return true;
    }
    assert!(std::env::var(REQUIRE).as_deref() != Ok("1"), "{test} cannot run: {}", text(&output.stderr));
    eprintln!("SKIPPED: {test}: {}", text(&output.stderr));
    false
}

/// `cargo test` builds the other package's program only when it tests that package: build it where it is missing.
fn build_shaper() {
    let beside = Path::new(env!("CARGO_BIN_EXE_accel")).with_file_name("shaper");
    if beside.exists() {
        return;
    }
    let target = beside.parent().and_then(Path::parent).expect("target/PROFILE/accel");
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    let status = Command::new(env!("CARGO"))
        .args(["build", "-p", "shaper", "--bin", "shaper", "--locked", "--profile", profile, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert!(status.success() && beside.exists(), "the shaper could not be built");
}

/// Every percentile is null or a number within its interval, with a known grade.
fn check_percentile(percentile: &Value, place: &str) {
    let number = |key: &str| percentile[key].as_f64();
    let value = number("value").unwrap_or_else(|| panic!("{place} has a value: {percentile}"));
    assert!(number("lo").is_none_or(|lo| lo <= value), "{place}: {percentile}");
    assert!(number("hi").is_none_or(|hi| value <= hi), "{place}: {percentile}");
    assert!(number("n_eff").unwrap() >= 1.0, "{place}: {percentile}");
    assert!(["ok", "rough", "insufficient"].contains(&percentile["grade"].as_str().unwrap()), "{place}");
}

fn check_phase(phase: &Value) {
    let name = format!("{} {}", phase["arm"], phase["phase"]);
    let latency = &phase["latency_ms"];
    let n = latency["n"].as_u64().unwrap();
    assert!(n >= 20, "{name}: {n} probes");
    for percentile in ["p50", "p95", "p99"] {
        check_percentile(&latency[percentile], &format!("{name} {percentile}"));
    }
    let p50 = latency["p50"]["value"].as_f64().unwrap();
    assert!(p50 >= 20.0, "{name}: the base RTT is 20 ms, p50 {p50}");
    let columns = ["t_ms", "kernel_ms", "user_ms", "retransmits"];
    let lengths = columns.map(|column| phase["samples"][column].as_array().unwrap().len());
    assert!(lengths.iter().all(|&l| l == lengths[0] && l as u64 >= n), "{name}: {lengths:?}");
    let (loads_up, loads_down) = match phase["phase"].as_str().unwrap() {
        "idle" => (false, false),
        "upload" => (true, false),
        "download" => (false, true),
        "bidirectional" => (true, true),
        other => panic!("unknown phase {other}"),
    };
    // Never more than the line carries.
    let goodput = |key: &str, limit: f64| {
        phase[key].as_f64().map(|mbps| assert!(mbps > 0.0 && mbps <= limit, "{name}"))
    };
    assert_eq!(goodput("up_mbps", 20.0).is_some(), loads_up, "{name}");
    assert_eq!(goodput("down_mbps", 100.0).is_some(), loads_down, "{name}");
    assert_eq!(phase["bulk_retransmit_pct"].is_number(), loads_up || loads_down, "{name}");
    assert!(phase["probe_loss_pct"].is_number(), "{name}");
}

#[test]
fn a_quick_run_measures_both_arms_and_writes_its_document() {
    build_shaper();
    let folder = Folder::new("quick");
    let json = folder.file("run.json");
    let output = accel(&["lab", "--quick", "--json", &json]).output().unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    if !was_possible("a quick run", &output) {
        return;
    }
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(!stdout.contains("p99 ms") && !stdout.contains('\u{1b}'), "{stdout}");
    assert!(stdout.contains("download queue: not ours to shape yet"), "{stdout}");
    assert!(stdout.contains("Verdict: ") && stdout.contains("Instrument, "), "{stdout}");
    assert!(stderr.contains("shaper on: upload"), "progress is a line a phase: {stderr}");

    let run: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(run["schema_version"], 1);
    assert_eq!(run["settings"]["congestion_control"], "cubic");
    let phases = run["phases"].as_array().unwrap();
    let named: Vec<_> =
        phases.iter().map(|p| (p["arm"].as_str().unwrap(), p["phase"].as_str().unwrap())).collect();
    let all = ["idle", "upload", "download", "bidirectional"];
    let expected: Vec<_> = ["off", "on"].iter().flat_map(|&arm| all.map(|phase| (arm, phase))).collect();
    assert_eq!(named, expected);
    phases.iter().for_each(check_phase);
    assert!(run["shaper"]["ready"].as_str().unwrap().starts_with("ready interface="), "{}", run["shaper"]);
    let median = |index: usize| phases[index]["latency_ms"]["p50"]["value"].as_f64().unwrap();
    // Orders of magnitude: loose on a loaded machine.
    assert!(median(1) > 60.0, "an unshaped upload fills the FIFO: {} ms", median(1));
    assert!(median(5) < median(1) / 2.0, "the shaper halves it at least: {} ms of {}", median(5), median(1));
}

#[test]
fn a_full_disk_costs_the_document_and_not_the_table() {
    let output = accel(&["lab", "--quick", "--shaper", "off", "--json", "/dev/full"]).output().unwrap();
    if !was_possible("a full disk", &output) {
        return;
    }
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("/dev/full: No space left on device") && stderr.contains("help: "), "{stderr}");
    assert!(stdout.contains("bidirectional") && stdout.contains("Verdict: none"), "{stdout}");
}

#[test]
fn bad_input_is_refused_with_advice_before_anything_runs() {
    let cases: &[(&[&str], i32, &str)] = &[
        (&[], 2, "Usage: accel"),
        (&["lab", "--up", "30mbps"], 2, "write 30mbit if you mean bits, 240mbit if you mean bytes"),
        (&["lab", "--up", "20"], 2, "did you mean 20mbit"),
        (&["lab", "--up", "0mbit"], 2, "at least 1 bit/s"),
        (&["lab", "--down", "fast"], 2, "unit"),
        (&["lab", "--up", "1kbit"], 2, "--up 1.0 kbit/s is outside"),
        (&["lab", "--rtt", "20"], 2, "such as 20ms"),
        (&["lab", "--rtt", "1000s"], 2, "--rtt 1000s is outside of what the lab emulates: 0ns to 900ms"),
        (&["lab", "--buffer", "0ms"], 2, "--buffer 0ns is outside"),
        (&["lab", "--buffer", "1us"], 2, "--buffer 1µs is outside"),
        (&["lab", "--up", "99999999999gbit"], 2, "at most 18446744073gbit"),
        (&["lab", "--seed", "-1"], 2, "invalid value '-1' for '--seed"),
        (&["lab", "--shaper", "off", "--json", "-"], 2, "standard output has the table"),
        (&["lab", "--flows", "0"], 2, "--flows 0 is not possible"),
        (&["lab", "--flows", "1000"], 2, "1 to 256"),
        (&["lab", "--loss", "101%"], 2, "0 to 100"),
        (&["lab", "--loss", "99%"], 2, "at most 20 %"),
        (&["lab", "--cc", "tahoe"], 2, "this kernel"),
        (&["lab", "--shaper", "maybe"], 2, "possible values: off, on, both"),
        (&["lab", "--shaper-rate", "0%"], 2, "usually 95%"),
        (&["lab", "--jitter", "-1ms"], 2, "'-1ms' is not a time"),
        (&["lab", "--up", "-5mbit"], 2, "'-5mbit' is out of range"),
        (
            &["lab", "--shaper", "off", "--json", "/nonexistent/run.json"],
            4,
            "/nonexistent/run.json: No such file",
        ),
        (&["lab", "--shaper", "off", "--json", "/"], 4, "Is a directory"),
        (&["labb"], 2, "'lab'"),
    ];
    for (arguments, code, message) in cases {
        let output = accel(arguments).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {stderr}");
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{arguments:?}: {}", text(&output.stdout));
    }
}

/// With the usual soft limit of 1024 a run of 256 flows would fail in its last phase.
#[test]
fn too_few_descriptors_are_told_of_before_anything_runs() {
    let script = r#"ulimit -n 1100; exec "$0" lab --quick --shaper off --flows 256"#;
    let output = Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_accel")]).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("only 1100 are allowed here") && stderr.contains("ulimit -n "), "{stderr}");
}

#[test]
fn a_missing_shaper_is_told_of_before_anything_runs() {
    let folder = Folder::new("alone");
    let alone = folder.file("accel");
    std::fs::copy(env!("CARGO_BIN_EXE_accel"), &alone).unwrap();
    let output = Command::new(&alone).arg("lab").stdin(Stdio::null()).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("cargo build --release") && stderr.contains("--shaper off"), "{stderr}");
}

/// Programs named `shaper` that fail in one way each.
#[test]
fn a_shaper_that_fails_fails_the_run_with_what_it_said() {
    let folder = Folder::new("failing");
    let alone = folder.file("accel");
    std::fs::copy(env!("CARGO_BIN_EXE_accel"), &alone).unwrap();
    for (script, message) in [
        ("echo 'no queue today' >&2; exit 7", "no queue today"),
        ("echo hello; exec sleep 60", "first line was not understood: \"hello\""),
        ("echo ready at last; sleep 0.5; exit 0", "the shaper ended (exit status: 0)"),
    ] {
        let shaper = folder.file("shaper");
        let guarded = format!("#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n{script}\n");
        std::fs::write(&shaper, guarded).unwrap();
        std::fs::set_permissions(&shaper, std::fs::Permissions::from_mode(0o755)).unwrap();
        let output = Command::new(&alone)
            .args(["lab", "--quick", "--shaper", "on"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        if !was_possible("a failing shaper", &output) {
            return;
        }
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{script}: {stderr}");
        assert!(stderr.contains(message) && stderr.contains("--shaper off"), "{script}: {stderr}");
        assert!(output.stdout.is_empty(), "{script}: no table of half a run");
    }
}

#[test]
fn help_version_completions_and_manual_are_there() {
    for (arguments, wanted) in [
        (&["lab", "--help"][..], "Exit codes:"),
        (&["lab", "--help"], "accel lab --quick"),
        (&["--version"], "accel 0."),
        (&["completions", "bash"], "_accel"),
        (&["man"], ".TH accel"),
    ] {
        let output = accel(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        assert!(text(&output.stdout).contains(wanted), "{arguments:?}: {}", text(&output.stdout));
    }
}

/// Processes whose parent chain leads to `root`, itself included, that are not zombies.
fn descendants(root: u32) -> Vec<u32> {
    let mut family = vec![root];
    loop {
        let children: Vec<u32> = processes()
            .into_iter()
            .filter(|(pid, parent)| family.contains(parent) && !family.contains(pid))
            .map(|(pid, _)| pid)
            .collect();
        if children.is_empty() {
            return family;
        }
        family.extend(children);
    }
}

/// (pid, parent) of every process that is not a zombie.
fn processes() -> Vec<(u32, u32)> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name in brackets may hold anything; the state and the parent follow it.
            let mut fields = stat.rsplit_once(") ")?.1.split(' ');
            (fields.next()? != "Z").then_some(())?;
            Some((pid, fields.next()?.parse().ok()?))
        })
        .collect()
}

fn wait(span: Duration) {
    let deadline = platform::clock::now() + span;
    platform::clock::sleep_until(deadline);
}

fn interrupt(child: &Child) {
    // The shell's own `kill`: tests outside of crate platform make no system calls.
    let status = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(status.success());
}

/// Starts a quick run, waits until its progress shows `at` and interrupts it.
fn interrupt_at(at: &str, arguments: &[&str], json: &str) {
    let mut child = accel(arguments)
        .args(["--json", json])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let mut said = Vec::new();
    let mut byte = [0];
    while !text(&said).contains(at) && stderr.read(&mut byte).unwrap() == 1 {
        said.push(byte[0]);
    }
    wait(Duration::from_millis(300));
    let family = descendants(child.id());
    if text(&said).contains(at) {
        interrupt(&child);
    }
    let sent = platform::clock::now();
    let output = child.wait_with_output().unwrap();
    let took = platform::clock::now() - sent;
    stderr.read_to_end(&mut said).unwrap();
    let output = Output { stderr: said, ..output };
    if !was_possible("an interrupted run", &output) {
        return;
    }
    assert_eq!(output.status.code(), Some(130), "{at}: {}", text(&output.stderr));
    assert!(text(&output.stderr).contains("interrupted"), "{at}: {}", text(&output.stderr));
    assert!(took < Duration::from_secs(3), "{at}: took {took:?}");
    assert!(!Path::new(json).exists(), "{at}: no empty document is left");
    let alive: Vec<_> = processes().into_iter().filter(|(pid, _)| family.contains(pid)).collect();
    assert!(alive.is_empty(), "{at}: left running: {alive:?} of {family:?}");
}

#[test]
fn ctrl_c_ends_every_phase_of_the_unshaped_arm() {
    let folder = Folder::new("interrupt-off");
    for at in ["off: idle", "off: upload", "off: bidirectional"] {
        interrupt_at(at, &["lab", "--quick", "--shaper", "off"], &folder.file("run.json"));
    }
}

#[test]
fn ctrl_c_ends_the_shaper_too() {
    build_shaper();
    let folder = Folder::new("interrupt-on");
    for at in ["on: starting", "on: upload"] {
        interrupt_at(at, &["lab", "--quick", "--shaper", "on"], &folder.file("run.json"));
    }
}

#[test]
fn a_killed_run_leaves_no_shaper_behind() {
    build_shaper();
    let mut child = accel(&["lab", "--quick", "--shaper", "on"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let under_way = lines.any(|line| line.contains("on: upload"));
    let family = descendants(child.id());
    child.kill().unwrap();
    let status = child.wait().unwrap();
    if !under_way {
        // The run said why it was not possible; the other tests of this file tell.
        assert_eq!(status.code(), Some(FORBIDDEN));
        return;
    }
    assert!(family.len() > 1, "the shaper was running");
    let alive = || processes().into_iter().any(|(pid, _)| family.contains(&pid));
    let deadline = platform::clock::now() + Duration::from_secs(5);
    while alive() && platform::clock::now() < deadline {
        wait(Duration::from_millis(50));
    }
    assert!(!alive(), "left running of {family:?}");
}
