//! Refusals come early, with a clear message, the documented exit code and nothing changed.

mod support;

use platform::namespace::{in_test, unshare_child};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, Output};
use support::World;

fn assert_refused(output: &Output, code: i32, words: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for word in words {
        assert!(text.contains(word), "'{word}' is missing in: {text}");
    }
    assert!(output.stdout.is_empty(), "nothing is shaped, so nothing is ready");
}

#[test]
fn wrong_arguments_are_refused_before_anything_is_changed() {
    in_test(|| {
        let world = World::new();
        let cases: [(&[&str], &[&str]); 10] = [
            (&["--rate-mbps", "0"], &["out of range"]),
            (&["--rate-mbps", "30mbps"], &["write 30mbit if you mean bits, 240mbit if you mean bytes"]),
            (&["--rate-mbps", "-5"], &["'-5mbit' is out of range"]),
            (&["--rate-mbps", "5MB/s"], &["write 5mbit if you mean bits, 40mbit if you mean bytes"]),
            (&["--rate-mbps", "fast"], &["--rate-mbps"]),
            (&[], &["--rate-mbps"]),
            (&["--rate-mbps", "5", "--interface", "eth7"], &["no interface 'eth7'", "there are: up0"]),
            (&["--rate-mbps", "5", "--interface", "lo"], &["loopback"]),
            (&["--rate-mbps", "5", "--overhead", "9999"], &["--overhead"]),
            (&["--rate-mbps", "5", "--log", "/nonexistent/x"], &["cannot open the log file /nonexistent/x"]),
        ];
        for (arguments, words) in cases {
            assert_refused(&world.shaper_output(arguments), 2, words);
        }
        assert!(world.tables().is_empty());
    });
}

#[test]
fn a_rate_above_the_links_is_refused_with_both_figures() {
    in_test(|| {
        let world = World::new();
        // A veth pair states 10 Gbit/s.
        let output = world.shaper_output(&["--rate-mbps", "20gbit"]);
        assert_refused(&output, 2, &["20000.0 Mbit/s is not below the 10000.0 Mbit/s of up0"]);
    });
}

#[test]
fn without_the_privilege_over_the_namespace_it_says_what_to_type() {
    in_test(|| {
        let world = World::new();
        // Root in a user namespace of its own has every capability, but none over this network namespace.
        let output = world.client.run(|| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_shaper"));
            unshare_child(&mut command).args(["--rate-mbps", "5"]).output().unwrap()
        });
        assert_refused(&output, 3, &["CAP_NET_ADMIN", "sudo ", "--rate-mbps 5"]);
    });
}

#[test]
fn a_second_shaper_on_the_interface_is_refused_and_the_first_goes_on() {
    in_test(|| {
        let world = World::new();
        let mut first = world.shaper(&["--rate-mbps", "5"]);
        let holder = format!("(process {}) is shaping up0", first.child.id());
        assert_refused(&world.shaper_output(&["--rate-mbps", "9"]), 4, &[&holder]);
        assert!(first.child.try_wait().unwrap().is_none());
        assert_eq!(world.tables(), ["accel_shaper_up0"; 2]);
        assert!(first.end().success());
        // Nothing of the first is in the way of a third.
        assert!(world.shaper(&["--rate-mbps", "5"]).end().success());
    });
}

#[test]
fn status_lines_follow_the_ready_line_and_the_log_has_them_too() {
    in_test(|| {
        let world = World::new();
        let path = std::env::temp_dir().join(format!("accel-shaper-log-{}", std::process::id()));
        let shaper = world.shaper(&["--rate-mbps", "5", "--log", path.to_str().unwrap()]);
        assert!(shaper.ready.starts_with("ready interface=up0 rate_mbps=5.000 "), "{}", shaper.ready);
        let lines = [shaper.line(), shaper.line(), shaper.line()];
        assert!(lines[0].contains("dropped"), "{}", lines[0]);
        assert!(lines[2].trim_start().starts_with("5.00 "), "{}", lines[2]);
        assert!(lines.iter().all(|line| line.len() == 80), "{lines:?}");
        assert!(shaper.end().success());
        let log = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(log.contains("ready interface=up0") && log.contains(&lines[2]), "{log}");
        assert!(log.contains("SIGTERM: ending"), "{log}");
    });
}

#[test]
fn a_full_disk_ends_the_log_and_not_the_shaping() {
    in_test(|| {
        let world = World::new();
        let shaper = world.shaper(&["--rate-mbps", "5", "--log", "/dev/full"]);
        assert!(shaper.line().contains("dropped"));
        assert!(shaper.end().success());
    });
}

#[test]
fn a_log_of_the_largest_size_allowed_ends_and_not_the_shaping() {
    in_test(|| {
        let world = World::new();
        let path = std::env::temp_dir().join(format!("accel-shaper-limit-{}", std::process::id()));
        let mut limited = Command::new("sh");
        let script = r#"ulimit -f 0; exec "$0" "$@""#;
        limited.args(["-c", script, env!("CARGO_BIN_EXE_shaper"), "--rate-mbps", "5", "--log"]).arg(&path);
        let shaper = world.start(limited);
        assert!(shaper.line().contains("dropped"));
        assert!(shaper.end().success());
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
        std::fs::remove_file(&path).unwrap();
    });
}

#[test]
fn a_named_pipe_as_log_is_never_waited_for() {
    in_test(|| {
        let world = World::new();
        let path = std::env::temp_dir().join(format!("accel-shaper-pipe-{}", std::process::id()));
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let arguments = ["--rate-mbps", "5", "--log", path.to_str().unwrap()];
        assert_refused(&world.shaper_output(&arguments), 2, &["cannot open the log file", "No such device"]);
        // A reader that never reads: both ends, so that opening waits for nobody.
        let mut reader = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let shaper = world.shaper(&arguments);
        // A pipe holds 64 KB. Filled up to a few bytes, so that this write ends.
        reader.write_all(&vec![b'x'; (1 << 16) - 1024]).unwrap();
        (0..12).for_each(|_| drop(shaper.line()));
        assert!(shaper.end().success());
        std::fs::remove_file(&path).unwrap();
    });
}

#[test]
fn arguments_that_are_no_text_are_refused_without_a_panic() {
    in_test(|| {
        let world = World::new();
        let strange = OsString::from_vec(b"/tmp/\xff/log".to_vec());
        let run = |unprivileged: bool, flag: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_shaper"));
            if unprivileged {
                unshare_child(&mut command);
            }
            command.args(["--rate-mbps", "5", flag]).arg(&strange);
            world.client.run(move || command.output().unwrap())
        };
        assert_refused(&run(true, "--log"), 3, &["CAP_NET_ADMIN", "sudo "]);
        assert_refused(&run(false, "--log"), 2, &["cannot open the log file"]);
        assert_refused(&run(false, "--interface"), 2, &["UTF-8"]);
    });
}

#[test]
fn a_worker_started_by_hand_ends_at_once() {
    let arguments = ["worker", "--rate-bits=1000000", "--overhead=0", "--mtu=1500", "--prio-bytes=6000"];
    let output = Command::new(env!("CARGO_BIN_EXE_shaper")).args(arguments).output().unwrap();
    assert_refused(&output, 1, &["not a supervisor's channel"]);
}
