//! The instrument as a library: everything behind the `accel` program, so that tests can reach it.

pub mod probe;
