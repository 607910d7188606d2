//! What a client says first on each connection: one byte for the role, one for the length of a name, the name.
//!
//! | byte | meaning |
//! |---|---|
//! | `U` / `D` | the server shall be the sink of an upload / the source of a download |
//! | n, 0 to 15 | length of the name |
//! | n bytes | congestion control of the server's sending side, by the kernel's name; empty for its default |

/// Longest name that TCP_CONGESTION takes (TCP_CA_NAME_MAX - 1 in linux/tcp.h).
pub(super) const MAX_NAME_BYTES: usize = 15;
/// Longest hello.
pub(super) const MAX_BYTES: usize = 2 + MAX_NAME_BYTES;

/// What the server is asked to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Receives and reports: the client uploads.
    Sink,
    /// Sends: the client downloads.
    Source,
}

/// A client's first words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) role: Role,
    /// Empty for the system's default.
    pub(super) congestion: String,
}

/// The bytes are no hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotAHello;

impl Hello {
    /// The bytes to send; a name that is too long is cut (no kernel knows such a one).
    pub(super) fn encode(&self) -> Vec<u8> {
        let name = &self.congestion.as_bytes()[..self.congestion.len().min(MAX_NAME_BYTES)];
        let role = match self.role {
            Role::Sink => b'U',
            Role::Source => b'D',
        };
        // At most MAX_NAME_BYTES, which fits.
        [&[role, name.len() as u8], name].concat()
    }

    /// Reads a hello from what has come so far: it and its length, or `None` when bytes are missing.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, NotAHello> {
        let Some(&first) = bytes.first() else { return Ok(None) };
        let role = match first {
            b'U' => Role::Sink,
            b'D' => Role::Source,
            _ => return Err(NotAHello),
        };
        let Some(&length) = bytes.get(1) else { return Ok(None) };
        let end = 2 + usize::from(length);
        if end > MAX_BYTES {
            return Err(NotAHello);
        }
        let Some(name) = bytes.get(2..end) else { return Ok(None) };
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
        if !name.iter().all(is_name) {
            return Err(NotAHello);
        }
        let congestion = name.iter().copied().map(char::from).collect();
        Ok(Some((Self { role, congestion }, end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_read_back_from_any_first_part() {
        for role in [Role::Sink, Role::Source] {
            for name in ["", "cubic", "abcdefghijklmno"] {
                let hello = Hello { role, congestion: name.to_owned() };
                let mut bytes = hello.encode();
                for cut in 0..bytes.len() {
                    assert_eq!(Hello::parse(&bytes[..cut]), Ok(None));
                }
                let length = bytes.len();
                bytes.extend(b"data");
                assert_eq!(Hello::parse(&bytes), Ok(Some((hello, length))));
            }
        }
    }

    #[test]
    fn garbage_is_refused() {
        for bytes in [&b"GET / HTTP/1.1"[..], b"U\xff", b"D\x10", b"U\x02..", b"D\x01\0", b"\0"] {
            assert_eq!(Hello::parse(bytes), Err(NotAHello), "{bytes:?}");
        }
    }
}
