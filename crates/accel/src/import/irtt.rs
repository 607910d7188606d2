//! irtt's JSON output (manual page irtt-client(1), "JSON format"): read round trip by round trip.

use super::json::refused;
use super::{Columns, Series};
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use std::fmt;

/// The list `round_trips`, already as columns.
pub(super) struct RoundTrips(Columns);

/// The only series of such a file.
pub(super) fn series(round_trips: RoundTrips) -> Series {
    Series { name: String::new(), columns: round_trips.0, idle_rtt_ms: Vec::new() }
}

#[derive(serde::Deserialize)]
struct RoundTrip {
    lost: Lost,
    timestamps: Timestamps,
    #[serde(default)]
    delay: Delay,
}

/// `false`, `true`, `true_up` or `true_down`, as a string or as a truth value.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Lost {
    Truth(bool),
    Word(String),
}

#[derive(serde::Deserialize)]
struct Timestamps {
    client: Client,
}

#[derive(serde::Deserialize)]
struct Client {
    send: Stamp,
}

/// Nanoseconds.
#[derive(serde::Deserialize)]
struct Stamp {
    wall: Option<f64>,
    monotonic: Option<f64>,
}

#[derive(Default, serde::Deserialize)]
struct Delay {
    /// Nanoseconds.
    rtt: Option<f64>,
}

const NANOSECONDS_IN_MS: f64 = 1e6;

impl<'de> Deserialize<'de> for RoundTrips {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = RoundTrips;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("irtt's list of round trips")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RoundTrips, A::Error> {
                let mut columns = Columns::default();
                while let Some(trip) = list.next_element::<RoundTrip>()? {
                    let stamp = trip.timestamps.client.send;
                    let Some(sent) = stamp.monotonic.or(stamp.wall) else {
                        return Err(serde::de::Error::custom("a round trip without a time of sending"));
                    };
                    let lost = match trip.lost {
                        Lost::Truth(lost) => lost,
                        Lost::Word(word) => word.starts_with("true"),
                    };
                    let rtt = trip.delay.rtt.filter(|_| !lost).map(|rtt| rtt / NANOSECONDS_IN_MS);
                    columns.push(sent / NANOSECONDS_IN_MS, rtt).map_err(|e| refused(&e))?;
                }
                Ok(RoundTrips(columns))
            }
        }
        deserializer.deserialize_seq(List)
    }
}
