//! Run documents to text: pure functions, one file per format; only `main` prints.

pub mod csv;
pub mod flent;
pub mod html;
pub mod json;
pub mod markdown;
pub mod prom;
mod svg;
pub mod text;
pub mod view;
