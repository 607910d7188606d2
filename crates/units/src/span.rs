//! Spans of time at the edges: reading `20ms`, printing `20.13 ms`.

use std::fmt;
use std::time::Duration;

/// A span in milliseconds.
pub fn as_ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// A span of `ms` milliseconds; `None` for a negative number, NaN or more than 584 years.
pub fn from_ms(ms: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(ms / 1e3).ok()
}

/// `20.13 ms`: two decimals, always in milliseconds.
pub fn display_ms(span: Duration) -> String {
    format!("{:.2} ms", as_ms(span))
}

/// Why a text is not a span of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseSpanError(String);

impl fmt::Display for ParseSpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a time; write a number and a unit, such as 20ms or 1.5s", self.0)
    }
}

impl std::error::Error for ParseSpanError {}

/// Reads `20ms`, `1.5s`, `500us`.
///
/// # Errors
/// When the number or the unit is missing, unknown, negative or not finite.
pub fn parse_span(text: &str) -> Result<Duration, ParseSpanError> {
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(trimmed.len());
    let factor = match trimmed[split..].to_ascii_lowercase().as_str() {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return Err(ParseSpanError(text.to_owned())),
    };
    let number: Option<f64> = trimmed[..split].trim_end().parse().ok();
    number
        .and_then(|n| Duration::try_from_secs_f64(n * factor).ok())
        .ok_or_else(|| ParseSpanError(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints() {
        assert_eq!(parse_span("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(parse_span("1.5 s"), Ok(Duration::from_millis(1_500)));
        assert_eq!(parse_span("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(display_ms(Duration::from_micros(20_134)), "20.13 ms");
        assert_eq!(from_ms(0.5), Some(Duration::from_micros(500)));
        assert_eq!(from_ms(f64::NAN), None);
    }

    #[test]
    fn nonsense_is_refused_with_advice() {
        for text in ["", "20", "ms", "-1ms", "infs", "1h", "1e400s"] {
            let message = parse_span(text).unwrap_err().to_string();
            assert!(message.contains("20ms"), "{text}");
        }
    }
}
