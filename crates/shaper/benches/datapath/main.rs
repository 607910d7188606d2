//! What the engine costs on the packet path: the program's pump against a bare loop that accepts every packet, over
//! the same queue of the same uploads, in short slices that alternate; and what a verdict costs behind many held
//! packets.
//!
//!     cargo bench -p shaper --bench datapath [-- --quick]
//!
//! Four TCP uploads cross a veth pair between two namespaces as fast as they can; the engine's rate is set so high that
//! it never makes a packet wait. The figures are ratios of one run on one machine. On a machine with other load the
//! ratio by CPU time is the steadier one.

mod bulk;
mod held;
mod slices;

use platform::namespace::{enter_user_namespace, is_privileged};
use slices::{Pair, Slice};

fn main() {
    if !is_privileged() {
        enter_user_namespace().unwrap_or_else(|error| panic!("namespaces are needed: {error}"));
    }
    let slices = if std::env::args().any(|argument| argument == "--quick") { 100 } else { 500 };
    println!(
        "the pump with the engine against a bare accept-all loop; {slices} pairs of slices of 20 ms, medians"
    );
    println!("{:<20}{:>24}{:>26}{:>10}", "", "packets/s in thousands", "CPU time, ns a packet", "");
    println!(
        "{:<20}{:>8}{:>8}{:>8}{:>10}{:>8}{:>8}{:>10}",
        "", "bare", "pump", "ratio", "bare", "pump", "ratio", "Gbit/s"
    );
    for (name, gso) in [("segments (no GSO)", false), ("super-packets (GSO)", true)] {
        print_row(name, &slices::run(gso, slices));
    }
    println!("\nnanoseconds a verdict, all of so many held packets answered in one order");
    println!("{:>8}{:>16}{:>16}", "held", "oldest first", "newest first");
    for packets in [100, 1000, 3000, 5300, 10_000] {
        let [oldest, newest] =
            [false, true].map(|newest_first| held::nanos_per_verdict(packets, newest_first));
        println!("{packets:>8}{oldest:>16.0}{newest:>16.0}");
    }
}

/// The ratios are medians of the pairs' own ratios.
fn print_row(name: &str, pairs: &[Pair]) {
    let of = |slice: fn(&Pair) -> &Slice, figure: fn(&Slice) -> f64| {
        median(pairs.iter().map(|pair| figure(slice(pair))).collect())
    };
    let ratio = |figure: fn(&Slice) -> f64| {
        median(pairs.iter().map(|pair| figure(&pair.pump) / figure(&pair.bare)).collect())
    };
    println!(
        "{name:<20}{:>8.1}{:>8.1}{:>8.3}{:>10.0}{:>8.0}{:>8.3}{:>10.2}",
        of(|p| &p.bare, Slice::packets_per_s) / 1e3,
        of(|p| &p.pump, Slice::packets_per_s) / 1e3,
        ratio(Slice::packets_per_s),
        of(|p| &p.bare, Slice::cpu_ns_per_packet),
        of(|p| &p.pump, Slice::cpu_ns_per_packet),
        1.0 / ratio(Slice::cpu_ns_per_packet),
        of(|p| &p.pump, Slice::bits_per_s) / 1e9,
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
