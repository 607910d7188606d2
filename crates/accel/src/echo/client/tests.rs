//! The echoes over loopback, against the real far end.

use super::*;
use crate::load::Policy;
use crate::serve::FarEnd;

static GO_ON: AtomicBool = AtomicBool::new(false);
const PATIENCE: Duration = Duration::from_secs(10);

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn plan(length: Duration) -> EchoPlan {
    let start = clock::now() + ms(20);
    let window = Window { start, end: start + length };
    EchoPlan { window, period: ms(10), jitter: 0.5, timeout: PATIENCE, seed: 3 }
}

fn far_end(token: Option<&Token>) -> FarEnd {
    let policy = Policy { token: token.cloned(), ..Policy::default() };
    FarEnd::start("127.0.0.1:0".parse().unwrap(), policy).unwrap()
}

#[test]
fn every_echo_comes_back_in_every_window() {
    let token: Token = "correct-horse".parse().unwrap();
    let server = far_end(Some(&token));
    let mut client = EchoClient::connect(server.address(), Some(&token), PATIENCE).unwrap();
    for _ in 0..2 {
        let result = std::thread::scope(|scope| {
            scope.spawn(|| client.run(&plan(ms(600)), &GO_ON).unwrap()).join().unwrap()
        });
        for series in [&result.frames, &result.two_writes] {
            assert!(series.round_trips.len() >= 10, "{series:?}");
            assert!(series.round_trips.iter().all(Option::is_some), "{series:?}");
        }
        for (series, bytes) in [(&result.small, 92), (&result.full, 1_428)] {
            assert_eq!(series.ip_bytes, bytes);
            assert!(series.fates.len() >= 4 && series.fates.iter().all(|fate| *fate == Fate::Answered));
            let took = |i: usize| series.round_trips[i].unwrap().as_nanos() as i128;
            for i in 0..series.fates.len() {
                // Both clocks are one on a single machine: the two ways add up to the round trip.
                let ways = series.up_ns[i].unwrap() + series.down_ns[i].unwrap();
                assert!((ways - took(i)).abs() < 1_000, "{ways} {}", took(i));
            }
        }
    }
}

#[test]
fn a_stranger_is_turned_away() {
    let token: Token = "correct-horse".parse().unwrap();
    let server = far_end(Some(&token));
    let error = EchoClient::connect(server.address(), None, PATIENCE).err().unwrap().to_string();
    assert!(error.contains("--token"), "{error}");
}

#[test]
fn a_server_that_goes_away_leaves_unanswered_probes_and_no_hang() {
    let server = far_end(None);
    let mut client = EchoClient::connect(server.address(), None, PATIENCE).unwrap();
    drop(server);
    let plan = EchoPlan { timeout: ms(200), ..plan(ms(300)) };
    let result =
        std::thread::scope(|scope| scope.spawn(|| client.run(&plan, &GO_ON).unwrap()).join().unwrap());
    assert!(result.frames.round_trips.iter().all(Option::is_none));
    assert!(result.small.fates.iter().all(|fate| *fate == Fate::Unknown));
    assert!(clock::now() < plan.window.end + PATIENCE);
}
