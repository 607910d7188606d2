//! Commands beside shaping itself.

pub mod replay;
