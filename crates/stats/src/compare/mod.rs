//! Two states of a link against each other: is B better than A, by how much, and could it be the instrument?
//!
//! ```text
//! coin -> rounds of A and B -> percentile per round -> paired differences -> Hodges-Lehmann, Walsh interval
//!                                                                                |
//! control, user minus kernel, clock -> floor ------------------------------------+-> change -> family -> verdict
//! ```
//!
//! Pooled samples of two runs are not compared: latency drifts, and such a comparison found differences in 17 to
//! 83 % of cases where there were none. Each pair of rounds gives one difference, and only the scatter of those
//! differences counts. Two single runs get a description without a verdict ([`describe()`]).

mod coin;
mod describe;
mod drift;
mod family;
mod floor;
mod paired;
mod pooled;
mod sign_flips;
mod walsh;

pub use coin::{Order, order_by_coin};
pub use describe::{Description, describe};
pub use drift::drifts;
pub use family::{Better, Endpoint, Finding, MAX_PRIMARY, Verdict, family, largest_holm_family};
pub use floor::Floor;
pub use paired::{Change, Comparison, compare, differences};
pub use pooled::{Pooled, pool};
pub use sign_flips::step_down_max_t;
pub use walsh::{MIN_ROUNDS, holm, signed_rank_p};
