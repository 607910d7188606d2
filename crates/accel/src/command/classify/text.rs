//! The readable answer: label, figures, the gap drawn, and what would help.

use super::strip::strip;
use crate::import::Series;
use stats::{Classification, TailLabel};

/// One series.
pub(super) fn block(series: &Series, result: &Classification) -> String {
    let mut text = String::new();
    if !series.name.is_empty() {
        text += &format!("{}: ", series.name);
    }
    text += &format!("{}\n", strip(series.columns.rtt_ms(), result.gap));
    let title = result.label.as_str().replace('_', "-").to_uppercase();
    text += &format!("{title}   {}\n", result.why);
    if let (Some(share), Some(lo), Some(hi)) = (result.affected.share, result.affected.lo, result.affected.hi)
        && result.affected.lost > 0
    {
        text += &format!(
            "            lost or sent again: {:.1} % (95 % CI {:.1} to {:.1}), {}\n",
            100.0 * share,
            100.0 * lo,
            100.0 * hi,
            result.affected.grade.as_str()
        );
    }
    text += &format!("            decided by {}\n", basis(result));
    if series.columns.has_assumed_times() {
        text += "            the file has no times: probes taken as sent at the tool's default interval\n";
    }
    if result.n < series.columns.len() {
        text += &format!(
            "            judged on {} of {} samples, evenly chosen\n",
            result.n,
            series.columns.len()
        );
    }
    text += &format!("--> helps: {}\n", helps(result.label));
    text += &format!("    does not help: {}\n", does_not_help(result.label));
    text
}

fn basis(result: &Classification) -> &'static str {
    match result.basis {
        stats::Basis::Counters => "the system's retransmit counters",
        stats::Basis::Shape => "the shape of the distribution: there are no retransmit counters",
    }
}

/// What would help against a cause.
pub(super) const fn helps(label: TailLabel) -> &'static str {
    match label {
        TailLabel::Clean => "nothing is needed",
        TailLabel::QueueBuildup => {
            "a shaper with fq_codel or CAKE in front of the bottleneck, a little below its rate"
        }
        TailLabel::LossRetransmit => {
            "finding where packets are lost: cable, radio, a policer, a full router on the path"
        }
        TailLabel::Mixed => {
            "a shaper against the queue; then whatever loses packets is looked at again without it"
        }
        TailLabel::Spikes => {
            "a cable instead of radio, no background scans, power saving off; a busy machine given less to do"
        }
        TailLabel::BimodalRoute => {
            "another provider or peering, or pinning the flow to the better route where that is possible"
        }
        TailLabel::Insufficient => "more samples: at least 20, some hundred for the tail",
    }
}

/// What would be tried in vain.
pub(super) const fn does_not_help(label: TailLabel) -> &'static str {
    match label {
        TailLabel::Clean => "any tweak: there is nothing to gain",
        TailLabel::QueueBuildup => "looking for packet loss, changing the route or the DNS server",
        TailLabel::LossRetransmit => "egress shaping: the delay is a retransmission timer, not a queue",
        TailLabel::Mixed => "shaping alone: the retransmitted probes stay",
        TailLabel::Spikes => "shaping: no queue stands between the spikes",
        TailLabel::BimodalRoute => "shaping: each route has its own length",
        TailLabel::Insufficient => "guessing",
    }
}
