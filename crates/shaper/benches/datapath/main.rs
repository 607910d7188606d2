//! What the engine costs on the packet path: the program's pump against a bare loop that accepts every packet, over
//! the same NFQUEUE code, in interleaved rounds of one run; and what a verdict costs behind many held packets.
//!
//!     cargo bench -p shaper --bench datapath [-- --quick]
//!
//! Four TCP uploads cross a veth pair between two namespaces as fast as they can; the engine's rate is set so high that
//! it never makes a packet wait. The figures are ratios of one run on one machine; other load widens their spread.

mod bulk;
mod held;
mod round;

use platform::namespace::{enter_user_namespace, is_privileged};
use round::Handler;

fn main() {
    if !is_privileged() {
        enter_user_namespace().unwrap_or_else(|error| panic!("namespaces are needed: {error}"));
    }
    let rounds = if std::env::args().any(|argument| argument == "--quick") { 3 } else { 15 };
    println!("pump with the engine against a bare accept-all loop, {rounds} rounds each, interleaved");
    println!(
        "{:<22}{:>12}{:>12}{:>14}{:>14}{:>16}",
        "", "bare kpkt/s", "pump kpkt/s", "pump/bare", "(min..max)", "CPU ns/packet"
    );
    for (name, gso) in [("segments (no GSO)", false), ("super-packets (GSO)", true)] {
        compare(name, gso, rounds);
    }
    println!("\nnanoseconds a verdict, all of so many held packets answered in one order");
    println!("{:>8}{:>16}{:>16}", "held", "oldest first", "newest first");
    for packets in [100, 1000, 3000, 5300, 10_000] {
        let [oldest, newest] =
            [false, true].map(|newest_first| held::nanos_per_verdict(packets, newest_first));
        println!("{packets:>8}{oldest:>16.0}{newest:>16.0}");
    }
}

/// Each round runs both, in alternating order; the ratio is taken within the round and its median printed.
fn compare(name: &str, gso: bool, rounds: usize) {
    let (mut bare, mut pump, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..rounds {
        let order =
            if number % 2 == 0 { [Handler::Bare, Handler::Pump] } else { [Handler::Pump, Handler::Bare] };
        let [first, second] = order.map(|handler| round::run(handler, gso));
        let (b, p) = if number % 2 == 0 { (first, second) } else { (second, first) };
        ratios.push(p.packets_per_s / b.packets_per_s);
        bare.push(b);
        pump.push(p);
    }
    ratios.sort_by(f64::total_cmp);
    let rate = |results: &[round::Outcome]| median(results.iter().map(|r| r.packets_per_s).collect()) / 1e3;
    let cpu = |results: &[round::Outcome]| median(results.iter().map(|r| r.cpu_ns_per_packet).collect());
    let gbit = median(pump.iter().map(|r| r.bits_per_s).collect()) / 1e9;
    println!(
        "{name:<22}{:>12.1}{:>12.1}{:>14.3}{:>14}{:>16}   {gbit:.2} Gbit/s",
        rate(&bare),
        rate(&pump),
        median(ratios.clone()),
        format!("{:.2}..{:.2}", ratios[0], ratios[ratios.len() - 1]),
        format!("{:.0} -> {:.0}", cpu(&bare), cpu(&pump)),
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
