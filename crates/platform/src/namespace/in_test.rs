//! Tests inside namespaces, as root and as an ordinary user, in a test harness that has threads.

use super::{is_privileged, unshare_child};
use std::io::Write;
use std::process::{Command, Output};

/// Set in the process that was started anew inside a user namespace.
const INSIDE: &str = "ACCEL_TEST_IN_USER_NAMESPACE";
/// When set to 1, a test that cannot run fails instead of being skipped.
const REQUIRE: &str = "ACCEL_REQUIRE_NETNS";

/// Runs the body of one test with the privilege to make namespaces. Call it as the whole of a `#[test]` function:
///
/// ```no_run
/// # use platform::namespace::{Namespace, in_test};
/// #[test]
/// fn a_namespace_is_made() {
///     in_test(|| assert!(Namespace::create().is_ok()));
/// }
/// ```
/// As root the body runs at once. As an ordinary user the test program is started again for this one test in a
/// user namespace of its own, since a process with threads cannot enter one. Where the system forbids that, the
/// test is skipped with a line on stderr, or fails if ACCEL_REQUIRE_NETNS is 1.
///
/// # Panics
/// When the test fails, or is required and cannot run.
pub fn in_test<F: FnOnce()>(body: F) {
    if is_privileged() {
        return body();
    }
    let name = test_name(std::any::type_name::<F>());
    match run_inside(name) {
        Ok(output) => assert_passed(name, &output),
        Err(why) => skip(name, &why),
    }
}

/// `crate::module::tests::name::{{closure}}` is the test `module::tests::name`.
fn test_name(closure: &str) -> &str {
    let path = closure.split_once("::").map_or(closure, |(_, path)| path);
    path.split_once("::{{closure}}").map_or(path, |(name, _)| name)
}

fn run_inside(name: &str) -> Result<Output, String> {
    if std::env::var_os(INSIDE).is_some() {
        return Err("no privilege even inside a user namespace of its own".to_owned());
    }
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["--exact", name, "--nocapture"]).env(INSIDE, "1");
    unshare_child(&mut command).output().map_err(|error| format!("no user namespace: {error}"))
}

fn assert_passed(name: &str, output: &Output) {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    eprintln!("{stdout}{stderr}");
    assert!(output.status.success(), "{name} failed inside its user namespace");
    assert!(stdout.contains("1 passed"), "{name} was not found by its name");
    if stderr.contains("SKIPPED") {
        tell(&stderr);
    }
}

fn skip(name: &str, why: &str) {
    assert!(std::env::var(REQUIRE).as_deref() != Ok("1"), "{name} is required and cannot run: {why}");
    tell(&format!("SKIPPED: {name}: {why}\n"));
}

/// Straight to stderr: the harness swallows what `eprintln!` prints in a test that passes.
fn tell(text: &str) {
    // A closed stderr is no reason to fail a test.
    drop(std::io::stderr().write_all(text.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_test_is_read_off_its_closure() {
        assert_eq!(test_name("platform::links::tests::a::{{closure}}"), "links::tests::a");
        assert_eq!(test_name("lab_fidelity::a_handshake::{{closure}}"), "a_handshake");
    }

    #[test]
    fn the_body_runs_with_the_privilege() {
        in_test(|| assert!(is_privileged()));
    }
}
