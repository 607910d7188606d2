//! Whole stories in virtual time: sources, the shaper, and what becomes of each packet.

mod abuse;
mod acks;
mod golden;
mod pacing;
mod priority;
mod simulation;
mod sparse_and_bulk;
