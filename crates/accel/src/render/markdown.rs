//! A run as Markdown: the table, the verdict and what limits it.

use super::text::{loss_interval, percent, percentile_interval, percentile_value};
use super::view::{Goodput, Track, View};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// One section for each run.
pub fn render(views: &[View<'_>]) -> String {
    views.iter().map(section).collect::<Vec<_>>().join("\n")
}

fn section(view: &View<'_>) -> String {
    let mut parts = vec![format!("## accel {}", view.command), inline(&view.heading)];
    parts.push(if view.tracks.is_empty() { "No phase was measured.".to_owned() } else { table(view) });
    if !view.notes.is_empty() {
        parts.push(list(view.notes.iter()));
    }
    parts.extend(
        view.conclusion
            .iter()
            .enumerate()
            .map(|(i, text)| if i == 0 { format!("**{}**", inline(text)) } else { inline(text) }),
    );
    parts.push(inline(&view.instrument));
    if !view.warnings.is_empty() {
        parts.push(list(view.warnings.iter().map(|warning| format!("Warning: {warning}"))));
    }
    format!("{}\n", parts.join("\n\n"))
}

fn list(items: impl Iterator<Item = impl AsRef<str>>) -> String {
    items.map(|item| format!("- {}", inline(item.as_ref()))).collect::<Vec<_>>().join("\n")
}

/// Text in which no sign has a meaning of its own and no line ends.
fn inline(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~') {
            safe.push('\\');
        }
        safe.push(if letter.is_control() { ' ' } else { letter });
    }
    safe
}

fn table(view: &View<'_>) -> String {
    let mut header = vec!["phase".to_owned(), "of".to_owned(), "n".to_owned()];
    let percentiles = view.tracks.first().map_or(&[][..], |track| &track.percentiles);
    header.extend(percentiles.iter().map(|(name, _)| format!("{name} ms (95 % CI)")));
    header.extend(
        ["up Mbit/s", "down Mbit/s", "probes lost (95 % CI)", "bulk sent again", "tail"].map(str::to_owned),
    );
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header).add_rows(view.tracks.iter().map(row));
    let last = table.column_count().saturating_sub(1);
    for (i, column) in table.column_iter_mut().enumerate() {
        if i > 1 && i < last {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

fn row(track: &Track<'_>) -> Vec<String> {
    let mut row = vec![track.phase.to_string(), inline(&track.group), track.n.to_string()];
    row.extend(
        track
            .percentiles
            .iter()
            .map(|(_, p)| inline(&format!("{} ({})", percentile_value(p), percentile_interval(p)))),
    );
    row.extend([
        goodput(track.up),
        goodput(track.down),
        format!("{} ({})", percent(track.loss.value_pct), loss_interval(track.loss)),
        percent(track.bulk_retransmit_pct),
        inline(&track.tail.label.replace('_', " ")),
    ]);
    row
}

fn goodput(rate: Option<Goodput>) -> String {
    let Some(Goodput { mbps, limits }) = rate else { return "-".to_owned() };
    let limits = limits.map_or_else(String::new, |(lo, hi)| format!(" ({lo:.1}–{hi:.1})"));
    format!("{mbps:.1}{limits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_markdown_in_a_name_stay_signs() {
        assert_eq!(inline("a|b*\n<i>"), "a\\|b\\* \\<i\\>");
    }
}
