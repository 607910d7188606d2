//! The sentence that gives a label's figures.

use super::body::{Body, Shape};
use super::{Classification, MIN_BODY, TailLabel};
use crate::MIN_SAMPLES;

/// One sentence with the figures behind the label.
pub(super) fn why(result: &Classification, body: &Body, shape: &Shape) -> String {
    match result.label {
        TailLabel::Insufficient if result.n < MIN_SAMPLES => {
            format!("{} samples are too few to name a cause (needs {MIN_SAMPLES})", result.n)
        }
        TailLabel::Insufficient => {
            format!("only {} of {} probes came back at once (needs {MIN_BODY})", body.len(), result.n)
        }
        TailLabel::LossRetransmit => loss_part(result, body),
        TailLabel::Mixed => format!("{}; and {}", loss_part(result, body), shape_part(body, shape)),
        TailLabel::QueueBuildup | TailLabel::Spikes | TailLabel::BimodalRoute | TailLabel::Clean => {
            shape_part(body, shape)
        }
    }
}

fn loss_part(result: &Classification, body: &Body) -> String {
    let share = 100.0 * (result.retransmits + result.lost) as f64 / result.n.max(1) as f64;
    let mut text = match (result.retransmits, result.lost) {
        (again, 0) => format!("{again} of {} probes ({share:.1} %) were sent again", result.n),
        (0, lost) => format!("{lost} of {} probes ({share:.1} %) never came back", result.n),
        (again, lost) => {
            format!(
                "{again} probes were sent again and {lost} never came back ({share:.1} % of {})",
                result.n
            )
        }
    };
    if let Some(rto_ms) = result.rto_ms {
        text += &format!(", at {:.0} ms + k x {rto_ms:.0} ms", body.quantile(0.5));
    }
    if let Some(gap) = result.gap {
        text += &format!(" with a {:.0} ms empty gap beneath", gap.width_ms());
    }
    text
}

fn shape_part(body: &Body, shape: &Shape) -> String {
    let (p50, p99) = (body.quantile(0.5), body.quantile(0.99));
    match shape {
        Shape::Queue(queue) => format!(
            "{:.0} % of the probes waited beyond {:.0} ms on a path of {:.0} ms, up to {:.1} s on end (p50 {p50:.0} ms, p99 {p99:.0} ms)",
            100.0 * queue.share,
            queue.threshold_ms,
            body.base_ms,
            queue.longest_s
        ),
        Shape::Routes(routes) => {
            let modes: Vec<String> = routes
                .medians_ms
                .iter()
                .zip(&routes.shares)
                .map(|(ms, share)| format!("{ms:.1} ms ({:.0} %)", 100.0 * share))
                .collect();
            format!("the probes split into {} compact groups: {}", modes.len(), modes.join(", "))
        }
        Shape::Spikes(spikes) => format!(
            "{} of {} probes lie beyond {:.0} ms while the median is {p50:.1} ms",
            spikes.count,
            body.len(),
            spikes.threshold_ms
        ),
        Shape::Plain => format!(
            "the tail stays near the body: p50 {p50:.1} ms, p99 {p99:.1} ms, base {:.1} ms",
            body.base_ms
        ),
    }
}
