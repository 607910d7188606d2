//! Quantities that carry their unit in the type.
//!
//! | type | stored as | printed as |
//! |---|---|---|
//! | [`Timestamp`] | nanoseconds since its clock's epoch, `u64` | - |
//! | [`std::time::Duration`] | spans of time | `20.13 ms` by [`display_ms`] |
//! | [`Rate`] | bit/s, `u64` | `20.0 Mbit/s` |
//! | [`Bytes`] | bytes, `u64` | `48.0 KB` |
//! | [`Ratio`] | 0 to 1, `f64` | `1.25 %` |
//!
//! `bytes / rate` is the time on the wire, `rate * duration` the bytes that fit. Every operation saturates:
//! a quantity never wraps and never panics. Bare numbers exist only at the edges and carry their unit in
//! their name (`rtt_ms`, `limit_bytes`).

mod rate;
mod ratio;
mod size;
mod span;
mod time;

pub use rate::{ParseRateError, Rate};
pub use ratio::{ParseRatioError, Ratio};
pub use size::Bytes;
pub use span::{ParseSpanError, as_ms, display_ms, from_ms, parse_span};
pub use time::Timestamp;
