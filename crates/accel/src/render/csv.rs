//! Every probe of a run as CSV; `accel classify` and its like read it back.
//!
//! Columns: `run` (number of the file, from 1), `phase`, the track's own labels (`arm`), `t_s` (when the probe was due,
//! since the start of the run), `rtt_ms` (empty = lost; the waiting included where it was sent again), `retransmits`,
//! `kernel_ms` and `user_ms` (both clocks as recorded).

use super::view::{Track, View};
use std::fmt::Write;

/// The header and a row per probe.
pub fn render(views: &[View<'_>]) -> String {
    let first = views.iter().flat_map(|view| &view.tracks).next();
    let names: Vec<&str> = first.iter().flat_map(|track| &track.labels).map(|(name, _)| *name).collect();
    let mut text = String::from("run,phase,");
    names.iter().for_each(|name| text += &format!("{name},"));
    text += "t_s,rtt_ms,retransmits,kernel_ms,user_ms\n";
    for (i, view) in views.iter().enumerate() {
        view.tracks.iter().for_each(|track| rows(&mut text, i + 1, track, &names));
    }
    text
}

fn rows(text: &mut String, run: usize, track: &Track<'_>, names: &[&str]) {
    let label = |wanted: &&str| track.labels.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
    let labels: String = names
        .iter()
        .map(|name| format!("{},", label(name).map_or_else(String::new, |v| quoted(v))))
        .collect();
    let head = format!("{run},{},{labels}", track.phase);
    let field = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let samples = track.samples;
    for (i, point) in track.points().enumerate() {
        let (rtt, kernel, user) =
            (field(point.rtt_ms), field(samples.kernel_ms[i]), field(samples.user_ms[i]));
        // Microseconds: three decimals of a millisecond are all that the document has.
        let t_s = (track.started_ms + point.t_ms) / 1000.0;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{head}{t_s:.6},{rtt},{},{kernel},{user}", samples.retransmits[i]);
    }
}

/// RFC 4180 section 2: only names can hold what has to be quoted. Commas in names become semicolons, since simple
/// readers split at every comma.
fn quoted(name: &str) -> String {
    let plain = name.replace(',', ";").replace(['\r', '\n'], " ");
    if plain.contains('"') { format!("\"{}\"", plain.replace('"', "\"\"")) } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_field_of_one_line() {
        assert_eq!(quoted("a,b\n\"c\""), "\"a;b \"\"c\"\"\"");
        assert_eq!(quoted("example.org:443"), "example.org:443");
    }
}
