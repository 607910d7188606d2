//! The prober against the real kernel: over loopback, and in namespaces where loopback cannot show it.

use super::*;
use platform::clock;
use platform::links::{Links, VethEnd};
use platform::namespace::{Namespace, in_test};
use platform::poll::wait_readable;
use platform::tcp::{Connecting, TcpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

static RUN_ON: AtomicBool = AtomicBool::new(false);

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn target(address: SocketAddr) -> Target {
    Target { name: address.to_string(), address, own_server: true }
}

/// Starts now; full jitter, without the control.
fn plan(targets: Vec<Target>, period: Duration, length: Duration, timeout: Duration) -> ProbePlan {
    let start = clock::now();
    let window = Window { start, end: start + length };
    ProbePlan { targets, period, jitter: 0.5, timeout, seed: 11, window, control: false }
}

/// The kernel answers on its behalf, as long as the backlog has room.
fn listen(address: &str) -> (TcpSocket, SocketAddr) {
    let listener = TcpSocket::listen(address.parse().unwrap(), 1_024).unwrap();
    let address = listener.local_address().unwrap();
    (listener, address)
}

/// A listener whose backlog is full: it drops every SYN until somebody accepts.
fn full_listener() -> (TcpSocket, SocketAddr, TcpSocket) {
    // A backlog of 0 has room for one connection.
    let listener = TcpSocket::listen("127.0.0.1:0".parse().unwrap(), 0).unwrap();
    let address = listener.local_address().unwrap();
    let waiting = TcpSocket::open(address).unwrap();
    assert_eq!(waiting.connect(address).unwrap(), Connecting::InProgress);
    assert!(wait_readable(listener.as_fd(), clock::now() + ms(10_000)).unwrap());
    (listener, address, waiting)
}

fn count(result: &ProbeResult, target: usize, is_counted: impl Fn(&Outcome) -> bool) -> usize {
    result.samples.iter().filter(|s| s.target == target && is_counted(&s.outcome)).count()
}

#[test]
fn every_slot_of_every_target_is_answered_or_missed() {
    let ((_v4, v4), (_v6, v6)) = (listen("127.0.0.1:0"), listen("[::1]:0"));
    let mut plan = plan(vec![target(v4), target(v6)], ms(20), ms(600), ms(3_000));
    plan.control = true;
    let result = run(&plan, &RUN_ON).unwrap();
    assert_eq!(result.samples.len() + result.instrument.missed, 90);
    assert_eq!(result.control, Some(2));
    for sample in &result.samples {
        let Outcome::Reply { user, kernel: Some(kernel), retransmits: 0 } = sample.outcome else {
            panic!("{sample:?}");
        };
        assert!(kernel <= user && sample.scheduled <= sample.sent, "{sample:?}");
        assert_eq!(sample.clean_rtt(), Some(kernel));
        assert!(plan.window.contains(sample.scheduled));
    }
    assert!(result.samples.is_sorted_by_key(|sample| sample.scheduled));
    assert_eq!(result.real_samples().count(), result.samples.len() - count(&result, 2, |_| true));
    let instrument = &result.instrument;
    assert_eq!(instrument.connect_call.unwrap().n, result.samples.len());
    assert_eq!(
        instrument.user_minus_kernel.unwrap().n + instrument.control.unwrap().user.n,
        result.samples.len()
    );
    assert!(!result.cancelled);
    eprintln!("{instrument:#?}");
}

#[test]
fn a_closed_port_is_refused_and_not_a_handshake() {
    let (listener, address) = listen("127.0.0.1:0");
    drop(listener);
    let result = run(&plan(vec![target(address)], ms(10), ms(50), ms(1_000)), &RUN_ON).unwrap();
    assert_eq!(
        count(&result, 0, |o| matches!(o, Outcome::Refused { retransmits: 0, .. })),
        result.samples.len()
    );
    assert!(!result.samples.is_empty());
    assert!(result.samples.iter().all(|s| s.clean_rtt().is_none() && s.connect_time().is_none()));
}

#[test]
fn a_dropped_syn_is_flagged_and_gives_no_kernel_rtt() {
    let (listener, address, waiting) = full_listener();
    let plan = ProbePlan { jitter: 0.0, ..plan(vec![target(address)], ms(100), ms(100), ms(4_000)) };
    thread::scope(|scope| {
        scope.spawn(|| {
            clock::sleep_until(plan.window.end + ms(200));
            while listener.accept().unwrap().is_some() {}
        });
        let result = run(&plan, &RUN_ON).unwrap();
        let [Sample { outcome: Outcome::Reply { user, kernel: None, retransmits }, .. }] = result.samples[..]
        else {
            panic!("{:?}", result.samples);
        };
        // The first retransmission comes after 1 s (RFC 6298 section 2.1).
        assert!(retransmits >= 1 && user >= ms(900), "{retransmits} after {user:?}");
        assert_eq!(result.samples[0].clean_rtt(), None);
        assert_eq!(result.samples[0].connect_time(), Some(user));
        assert_eq!(result.instrument.after_window, 1);
    });
    drop(waiting);
}

#[test]
fn a_reply_after_the_timeout_is_late_and_not_lost() {
    let (listener, address, waiting) = full_listener();
    let mut plan = plan(vec![target(address)], ms(100), ms(1_500), ms(700));
    plan.jitter = 0.0;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            clock::sleep_until(plan.window.start + ms(500));
            while !stop.load(Ordering::Relaxed) {
                wait_readable(listener.as_fd(), clock::now() + ms(20)).unwrap();
                while listener.accept().unwrap().is_some() {}
            }
        });
        let result = run(&plan, &RUN_ON);
        stop.store(true, Ordering::Relaxed);
        let result = result.unwrap();
        let late = count(&result, 0, |o| matches!(o, Outcome::Late { retransmits: 1.., .. }));
        assert!(late >= 1, "{:?}", result.samples);
        assert_eq!(late, result.instrument.late);
        assert!(count(&result, 0, |o| matches!(o, Outcome::Reply { .. })) >= 1, "{:?}", result.samples);
    });
    drop(waiting);
}

#[test]
fn a_silent_path_loses_probes_within_the_timeout() {
    let (_listener, address, waiting) = full_listener();
    let plan = plan(vec![target(address)], ms(50), ms(200), ms(300));
    let result = run(&plan, &RUN_ON).unwrap();
    assert_eq!(count(&result, 0, |o| matches!(o, Outcome::Lost { .. })), result.samples.len());
    assert!(result.samples.len() + result.instrument.missed == 4, "{result:?}");
    assert!(clock::now() >= plan.window.end + plan.timeout, "the last probe has its full timeout");
    drop(waiting);
}

#[test]
fn one_dead_target_does_not_disturb_the_other() {
    let (_dead, dead, waiting) = full_listener();
    let (_alive, alive) = listen("127.0.0.1:0");
    let result = run(&plan(vec![target(dead), target(alive)], ms(20), ms(300), ms(400)), &RUN_ON).unwrap();
    assert_eq!(count(&result, 0, |o| matches!(o, Outcome::Lost { .. })), count(&result, 0, |_| true));
    assert_eq!(count(&result, 1, |o| matches!(o, Outcome::Reply { .. })), count(&result, 1, |_| true));
    assert!(count(&result, 1, |_| true) + result.instrument.missed >= 15);
    drop(waiting);
}

#[test]
fn a_black_hole_and_a_missing_route_are_told_apart() {
    in_test(|| {
        let namespace = Namespace::create().unwrap();
        let result = namespace.run(|| {
            let inside = Namespace::current().unwrap();
            let end = |name, last| VethEnd { name, mac: [2, 0, 0, 0, 0, last], namespace: &inside };
            let mut links = Links::open().unwrap();
            links.create_veth([end("near", 1), end("far", 2)], 1_500).unwrap();
            links.set_up("near").unwrap();
            links.set_up("far").unwrap();
            links.add_address("near", "198.18.0.1".parse().unwrap(), 24).unwrap();
            links.add_neighbour("near", "198.18.0.2".parse().unwrap(), [2, 0, 0, 0, 0, 9]).unwrap();
            let (hole, nowhere) = ("198.18.0.2:80".parse().unwrap(), "198.19.0.1:80".parse().unwrap());
            run(&plan(vec![target(hole), target(nowhere)], ms(50), ms(200), ms(1_300)), &RUN_ON).unwrap()
        });
        assert_eq!(
            count(&result, 0, |o| matches!(o, Outcome::Lost { retransmits: 1.. })),
            count(&result, 0, |_| true)
        );
        let unreachable = Outcome::Failed { error: io::ErrorKind::NetworkUnreachable };
        assert_eq!(count(&result, 1, |o| *o == unreachable), count(&result, 1, |_| true));
        assert!(count(&result, 0, |_| true) >= 1 && count(&result, 1, |_| true) >= 1);
    });
}

#[test]
fn a_cancelled_run_returns_what_it_has() {
    let (_listener, address) = listen("127.0.0.1:0");
    let plan = plan(vec![target(address)], ms(10), Duration::from_secs(3_600), ms(3_000));
    let cancel = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            clock::sleep_until(plan.window.start + ms(200));
            cancel.store(true, Ordering::Relaxed);
        });
        let result = run(&plan, &cancel).unwrap();
        assert!(result.cancelled);
        assert!(!result.samples.is_empty());
    });
    assert!(clock::now() < plan.window.start + Duration::from_secs(30));
}

#[test]
fn thousands_of_probes_leave_no_connection_behind() {
    in_test(|| {
        let namespace = Namespace::create().unwrap();
        let left = namespace.run(|| {
            let (_listener, address) = listen("127.0.0.1:0");
            let mut plan = plan(vec![target(address)], Duration::from_micros(500), ms(500), ms(1_000));
            plan.control = true;
            let result = run(&plan, &RUN_ON).unwrap();
            assert!(result.real_samples().any(|sample| sample.clean_rtt().is_some()));
            std::fs::read_to_string("/proc/thread-self/net/sockstat").unwrap()
        });
        assert!(left.contains("tw 0 "), "{left}");
    });
}

#[test]
fn a_plan_that_cannot_be_carried_out_says_why() {
    let address = "127.0.0.1:9".parse().unwrap();
    let message = |spoil: fn(&mut ProbePlan)| {
        let mut plan = plan(vec![target(address)], ms(10), ms(10), ms(10));
        spoil(&mut plan);
        run(&plan, &RUN_ON).unwrap_err().to_string()
    };
    assert_eq!(message(|plan| plan.targets.clear()), "probe plan: no target");
    assert_eq!(message(|plan| plan.period = ms(0)), "probe plan: the period is zero");
    assert!(message(|plan| plan.jitter = f64::NAN).contains("jitter"));
    assert!(message(|plan| plan.timeout = ms(0)).contains("timeout"));
}
