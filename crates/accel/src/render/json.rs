//! The run document as JSON.

use serde::Serialize;

/// One JSON object on one line, with a newline at its end. Numbers that are not finite come out as `null`.
///
/// # Errors
/// Never for a document of ours, whose keys are all texts; the serializer's signature asks for it.
pub fn render<Document: Serialize>(run: &Document) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(run)?;
    text.push('\n');
    Ok(text)
}
