//! The instrument as a library: everything behind the `accel` program, so that tests can reach it.

pub mod args;
pub mod command;
pub mod config;
pub mod echo;
pub mod emulator;
pub mod import;
pub mod load;
pub mod measurement;
pub mod names;
pub mod probe;
pub mod render;
pub mod run;
pub mod serve;
pub mod shaper_process;
pub mod statement;
pub mod targets;
pub mod verdict;
