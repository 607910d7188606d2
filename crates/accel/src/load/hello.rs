//! What a client says first on each connection, and the one byte that the server answers. Pure.
//!
//! | byte | meaning |
//! |---|---|
//! | `U` / `D` / `E` / `P` | the server shall be sink of an upload / source of a download / echo / echo of datagrams |
//! | n, 0 to 15 | length of the name |
//! | n bytes | congestion control of the server's sending side, by the kernel's name; empty for its default |
//! | m, 0 to 64 | length of the token |
//! | m bytes | the token; empty where none is wanted |
//!
//! A client sends nothing more before the answer.

use super::token::MAX_TOKEN_BYTES;

/// Longest name that TCP_CONGESTION takes (TCP_CA_NAME_MAX - 1 in linux/tcp.h).
pub(super) const MAX_NAME_BYTES: usize = 15;
/// Longest hello.
pub(super) const MAX_BYTES: usize = 3 + MAX_NAME_BYTES + MAX_TOKEN_BYTES;

/// What the server is asked to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Receives and reports: the client uploads.
    Sink,
    /// Sends: the client downloads.
    Source,
    /// Sends each frame back.
    Echo,
    /// Names a session, whose datagrams it sends back.
    Datagrams,
}

impl Role {
    const ALL: [(Self, u8); 4] =
        [(Self::Sink, b'U'), (Self::Source, b'D'), (Self::Echo, b'E'), (Self::Datagrams, b'P')];

    fn byte(self) -> u8 {
        Self::ALL.iter().find(|(role, _)| *role == self).map_or(0, |&(_, byte)| byte)
    }

    fn of(byte: u8) -> Option<Self> {
        Self::ALL.iter().find(|(_, of_role)| *of_role == byte).map(|&(role, _)| role)
    }
}

/// What the server makes of a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Here we go.
    Accepted,
    /// Another token is wanted.
    WrongToken,
    /// Too many connections, of this client or of all.
    TooMany,
    /// The server's kernel has no congestion control of this name, or keeps it for root.
    NoCongestion,
    /// This server does not offer that.
    NotOffered,
}

impl Answer {
    const ALL: [(Self, u8); 5] = [
        (Self::Accepted, b'+'),
        (Self::WrongToken, b'T'),
        (Self::TooMany, b'L'),
        (Self::NoCongestion, b'C'),
        (Self::NotOffered, b'N'),
    ];

    pub(crate) fn byte(self) -> u8 {
        Self::ALL.iter().find(|(answer, _)| *answer == self).map_or(0, |&(_, byte)| byte)
    }

    pub(crate) fn of(byte: u8) -> Option<Self> {
        Self::ALL.iter().find(|(_, of_answer)| *of_answer == byte).map(|&(answer, _)| answer)
    }
}

/// A client's first words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) role: Role,
    /// Empty for the system's default.
    pub(crate) congestion: String,
    /// Empty for none.
    pub(crate) token: Vec<u8>,
}

/// The bytes are no hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotAHello;

impl Hello {
    /// The bytes to send; a name that is too long is cut (no kernel knows such a one).
    pub(crate) fn encode(&self) -> Vec<u8> {
        let name = &self.congestion.as_bytes()[..self.congestion.len().min(MAX_NAME_BYTES)];
        let token = &self.token[..self.token.len().min(MAX_TOKEN_BYTES)];
        // Both lengths are bounded by what fits into a byte.
        [&[self.role.byte(), name.len() as u8], name, &[token.len() as u8], token].concat()
    }

    /// Reads a hello from what has come so far: it and its length, or `None` when bytes are missing.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, NotAHello> {
        let Some(&first) = bytes.first() else { return Ok(None) };
        let role = Role::of(first).ok_or(NotAHello)?;
        let Some((name, rest)) = field(&bytes[1..], MAX_NAME_BYTES)? else { return Ok(None) };
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
        if !name.iter().all(is_name) {
            return Err(NotAHello);
        }
        let Some((token, rest)) = field(rest, MAX_TOKEN_BYTES)? else { return Ok(None) };
        let congestion = name.iter().copied().map(char::from).collect();
        Ok(Some((Self { role, congestion, token: token.to_vec() }, bytes.len() - rest.len())))
    }
}

/// A field and what follows it.
type Split<'a> = (&'a [u8], &'a [u8]);

/// A length and so many bytes; `None` when bytes are missing.
fn field(bytes: &[u8], most: usize) -> Result<Option<Split<'_>>, NotAHello> {
    let Some((&length, rest)) = bytes.split_first() else { return Ok(None) };
    let length = usize::from(length);
    if length > most { Err(NotAHello) } else { Ok(rest.split_at_checked(length)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_read_back_from_any_first_part() {
        for (role, _) in Role::ALL {
            for (name, token) in [("", ""), ("cubic", "0123456789"), ("abcdefghijklmno", &"t".repeat(64))] {
                let hello = Hello { role, congestion: name.to_owned(), token: token.into() };
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
        for bytes in [&b"GET / HTTP/1.1"[..], b"U\xff", b"D\x10", b"U\x02..", b"D\x01\0", b"\0", b"E\0\x41"] {
            assert_eq!(Hello::parse(bytes), Err(NotAHello), "{bytes:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_hello_or_none_and_never_more_than_were_there(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        ) {
            if let Ok(Some((hello, length))) = Hello::parse(&bytes) {
                assert!(length <= bytes.len() && length <= MAX_BYTES);
                assert_eq!(hello.encode(), bytes[..length]);
            }
        }
    }

    #[test]
    fn answers_are_read_back() {
        for (answer, byte) in Answer::ALL {
            assert_eq!((Answer::of(answer.byte()), answer.byte()), (Some(answer), byte));
        }
        assert_eq!(Answer::of(b'?'), None);
    }
}
