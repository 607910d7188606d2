//! Numbers in the byte order of the machine that wrote the file.

/// The writer's byte order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ByteOrder {
    #[default]
    Little,
    Big,
}

impl ByteOrder {
    /// The number at `at`; 0 beyond the end, which callers exclude by checking the length first.
    pub fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        match self {
            Self::Little => u16::from_le_bytes(word),
            Self::Big => u16::from_be_bytes(word),
        }
    }

    /// The number at `at`; 0 beyond the end, which callers exclude by checking the length first.
    pub fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        match self {
            Self::Little => u32::from_le_bytes(word),
            Self::Big => u32::from_be_bytes(word),
        }
    }

    /// The number at `at`; 0 beyond the end, which callers exclude by checking the length first.
    pub fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        match self {
            Self::Little => u64::from_le_bytes(word),
            Self::Big => u64::from_be_bytes(word),
        }
    }
}
