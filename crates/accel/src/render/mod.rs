//! Run documents to text: pure functions, one file per format; only `main` prints.

pub mod json;
pub mod text;
