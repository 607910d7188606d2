//! The run document as JSON.

use crate::run::Run;

/// One JSON object on one line, with a newline at its end. Numbers that are not finite come out as `null`.
///
/// # Errors
/// Never for a [`Run`], whose keys are all texts; the serializer's signature asks for it.
pub fn render(run: &Run) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(run)?;
    text.push('\n');
    Ok(text)
}
