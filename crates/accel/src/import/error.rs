//! Why a file gave no samples: one line each.

use std::io;

/// Why a file gave no samples.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The system would not read it.
    #[error("cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// It is cut, corrupt, or of a format or version that is not known.
    #[error("not understood: {0}")]
    Format(String),
    /// It was understood, but the samples in it make no sense.
    #[error("{0}")]
    Samples(String),
}

impl ImportError {
    /// An error while reading: corrupt compression and limits of this program come as I/O errors, too.
    pub(super) fn from_read(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => Self::Format(error.to_string()),
            io::ErrorKind::UnexpectedEof => Self::Format("cut: its end is missing".into()),
            _ => Self::Unreadable(error),
        }
    }
}
