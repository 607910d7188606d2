//! The grade in words, how sure it is, and other scales.

use crate::measurement::{Grades, Measurement, OtherScales, PhaseGrade};
use crate::statement::ms_text;

/// One sentence a line; why there is no grade, where there is none.
pub(super) fn sentences(run: &Measurement) -> Vec<String> {
    let Some(grades) = &run.grade else {
        return vec![
            "Grade: none; latency under load needs an idle and a loaded phase of the same target.".to_owned(),
        ];
    };
    let mut lines = vec![headline(grades)];
    lines.extend(grades.phases.iter().map(phase));
    lines.push(
        "This grade is of p99 and thus harsher than one of a mean, as most web pages give: one bad moment in a hundred is \
         what a game or a call shows."
            .to_owned(),
    );
    lines.extend(other(&grades.other));
    lines
}

fn headline(grades: &Grades) -> String {
    format!(
        "Grade of latency under load: {}, by the worst phase ({}).",
        grades.overall.range(),
        grades.overall.phase
    )
}

fn phase(grade: &PhaseGrade) -> String {
    let PhaseGrade { phase, target, increase_ms, tail, .. } = grade;
    let value = increase_ms.value.map_or("?".to_owned(), signed);
    let interval = match (increase_ms.lo, increase_ms.hi) {
        (Some(lo), Some(hi)) => format!("{} to {}, at least 90 % sure", signed(lo), signed(hi)),
        (Some(lo), None) => format!("{} or more, no upper limit from so few samples", signed(lo)),
        _ => "no limits from so few samples".to_owned(),
    };
    let loss = if tail == "loss_retransmit" {
        "; its tail is loss, which no shaping of a queue would help"
    } else {
        ""
    };
    format!(
        "- {phase}: {} — p99 is {value} ms above the idle p50 ({interval}) to {target}{loss}",
        grade.range()
    )
}

fn other(other: &OtherScales) -> Option<String> {
    let (mean, letter) = (other.mean_increase_ms?, other.mean_letter?);
    let (aim, points) = (other.aim_increase_ms?, other.aim_points?);
    Some(format!(
        "Other scales of the same run: DSLReports (mean increase of upload and download) {letter}, {} ms; Cloudflare AIM, \
         latency increase under load {} ms = {points} of 20 points. RPM is not given: it takes HTTP requests on the loaded \
         connections, which this run does not make.",
        signed(mean),
        signed(aim)
    ))
}

/// To a hundredth, and never minus nothing.
fn signed(ms: f64) -> String {
    let hundredths = (ms * 100.0).round() / 100.0;
    ms_text(if hundredths == 0.0 { 0.0 } else { hundredths })
}
