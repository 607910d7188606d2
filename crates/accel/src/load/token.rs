//! The secret that a client shows to a server that is not on its own machine.

use platform::random;
use std::fmt;
use std::hint::black_box;
use std::io;
use std::str::FromStr;

/// Longest token in bytes.
pub(super) const MAX_TOKEN_BYTES: usize = 64;
/// Random bytes of a fresh one: 128 bits, which nobody guesses.
const FRESH_BYTES: usize = 16;

/// 8 to 64 printable ASCII characters without blanks.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A fresh one: 32 hexadecimal digits from the system's random source.
    ///
    /// # Errors
    /// When the system has none.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; FRESH_BYTES];
        random::fill(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The bytes to send.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Whether `shown` is this token, in a time that depends on neither's content.
    pub(super) fn is(&self, shown: &[u8]) -> bool {
        let own = self.as_bytes();
        if own.len() != shown.len() {
            return false;
        }
        black_box(own.iter().zip(shown).fold(0, |difference, (a, b)| difference | (a ^ b))) == 0
    }

    /// The text, to be printed once for whoever is to use it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for Token {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fits = (8..=MAX_TOKEN_BYTES).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        let refusal =
            || format!("a token is 8 to {MAX_TOKEN_BYTES} printable ASCII characters without blanks");
        fits.then(|| Self(text.to_owned())).ok_or_else(refusal)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_token_is_the_token() {
        let token: Token = "0123456789abcdef".parse().unwrap();
        assert!(token.is(b"0123456789abcdef"));
        for other in [&b"0123456789abcdee"[..], b"0123456789abcde", b"0123456789abcdef0", b""] {
            assert!(!token.is(other), "{other:?}");
        }
        assert_eq!(format!("{token:?}"), "Token(..)", "a log never shows it");
    }

    #[test]
    fn fresh_tokens_differ_and_are_tokens() {
        let (a, b) = (Token::random().unwrap(), Token::random().unwrap());
        assert_ne!(a.reveal(), b.reveal());
        assert!(a.reveal().parse::<Token>().is_ok());
        for bad in ["short", "has a blank in it", &"x".repeat(65), "umlaut-ä-here"] {
            assert!(bad.parse::<Token>().is_err(), "{bad}");
        }
    }
}
