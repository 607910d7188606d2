//! `accel serve`: the far end of a measurement, until a signal ends it.

mod args;

pub use args::{SERVE_EXAMPLES, SERVE_PORT, ServeArgs};

use super::signals::cancelled_by_signals;
use super::{Exit, Failure, Report};
use crate::load::{Policy, Token};
use crate::serve::FarEnd;
use platform::clock;
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The environment variable that holds a token.
pub(super) const TOKEN_VARIABLE: &str = "ACCEL_TOKEN";
/// Between two looks at the signals and the threads.
const STEP: Duration = Duration::from_millis(100);

/// Serves until SIGINT, SIGTERM or SIGHUP.
///
/// # Errors
/// When it cannot listen, or a token is no token.
pub fn run(args: &ServeArgs) -> Result<Report, Failure> {
    let stop = cancelled_by_signals()?;
    let token = token(args.token.as_deref(), args.no_token, &addresses(args))?;
    let mut ends = listen(args, token.as_ref())?;
    announce(&ends, token.as_ref());
    wait(&mut ends, &stop)?;
    let moved: u64 = ends.iter().map(FarEnd::received_bytes).sum();
    drop(ends);
    let text = format!("stopped; {:.1} MB were uploaded to this server\n", moved as f64 / 1e6);
    Ok(Report { text, failure: None })
}

/// What is served: what was typed, or everything on the usual port.
fn addresses(args: &ServeArgs) -> Vec<SocketAddr> {
    if !args.listen.is_empty() {
        return args.listen.clone();
    }
    vec![(Ipv4Addr::UNSPECIFIED, SERVE_PORT).into(), (Ipv6Addr::UNSPECIFIED, SERVE_PORT).into()]
}

/// The token typed, that of the environment, or a fresh one where others can reach the server.
fn token(typed: Option<&str>, none: bool, addresses: &[SocketAddr]) -> Result<Option<Token>, Failure> {
    let typed = match typed.filter(|_| !none) {
        Some(text) => Some(text.to_owned()),
        None if none => None,
        None => std::env::var(TOKEN_VARIABLE).ok().filter(|text| !text.is_empty()),
    };
    if let Some(text) = typed {
        let token = text.parse().map_err(|reason| {
            Failure::new(Exit::Usage, reason).help(format!("change --token or {TOKEN_VARIABLE}"))
        })?;
        return Ok(Some(token));
    }
    if none || addresses.iter().all(|address| address.ip().is_loopback()) {
        return Ok(None);
    }
    let fresh = Token::random();
    fresh.map(Some).map_err(|error| Failure::new(Exit::Failed, format!("cannot make a token: {error}")))
}

/// Listens everywhere that was asked for. Of the two defaults, one may be missing: not every machine has IPv6.
fn listen(args: &ServeArgs, token: Option<&Token>) -> Result<Vec<FarEnd>, Failure> {
    let policy = Policy {
        token: token.cloned(),
        connections: args.max_connections as usize,
        connections_per_client: args.max_connections_per_client as usize,
        rate_per_client: args.max_rate,
    };
    let mut ends = Vec::new();
    for address in addresses(args) {
        match FarEnd::start(address, policy.clone()) {
            Ok(end) => ends.push(end),
            Err(error) if args.listen.is_empty() && address.is_ipv6() && error.is_no_such_family() => {}
            Err(error) => {
                return Err(Failure::new(Exit::Failed, &error).help(error.advice()));
            }
        }
    }
    Ok(ends)
}

/// Tells the person at once what to type elsewhere; a closed stdout is no reason not to serve.
fn announce(ends: &[FarEnd], token: Option<&Token>) {
    let addresses: Vec<String> = ends.iter().map(|end| end.address().to_string()).collect();
    let mut text = format!("serving on {} (TCP and UDP); Ctrl-C ends it\n", addresses.join(" and "));
    let port = ends.first().map_or(SERVE_PORT, |end| end.address().port());
    let load = if port == SERVE_PORT { "HOST".to_owned() } else { format!("HOST:{port}") };
    match token {
        Some(token) => {
            let token = token.reveal();
            text.push_str(&format!(
                "token: {token}\nmeasure with: accel measure --load {load} --token {token}\n"
            ));
        }
        None => text.push_str(&format!("no token is wanted\nmeasure with: accel measure --load {load}\n")),
    }
    let mut out = std::io::stdout().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

fn wait(ends: &mut [FarEnd], stop: &AtomicBool) -> Result<(), Failure> {
    while !stop.load(Ordering::Relaxed) {
        clock::sleep_until(clock::now() + STEP);
        for end in &mut *ends {
            end.check().map_err(|error| Failure::new(Exit::Failed, error))?;
        }
    }
    Ok(())
}
