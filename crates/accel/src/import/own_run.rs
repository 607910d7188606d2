//! Run documents of this program ([`crate::run::Run`]): one series for each phase and arm.

use super::{Columns, ImportError, Series};
use crate::run::{Arm, Phase as Load, SCHEMA_VERSION, SampleColumns};

/// What is read of a phase record.
#[derive(serde::Deserialize)]
pub(super) struct Phase {
    arm: Arm,
    phase: Load,
    samples: SampleColumns,
}

/// The phases as series; the idle phase of an arm serves the loaded ones.
pub(super) fn series(version: u64, phases: Vec<Phase>) -> Result<Vec<Series>, ImportError> {
    if version != u64::from(SCHEMA_VERSION) {
        return Err(ImportError::Format(format!(
            "a run document of schema {version}; this program reads schema {SCHEMA_VERSION}"
        )));
    }
    let all: Vec<(Arm, Load, Columns)> = phases
        .into_iter()
        .map(|record| Ok((record.arm, record.phase, columns(&record.samples)?)))
        .collect::<Result<_, ImportError>>()?;
    let idle_of = |wanted: Arm| -> Vec<f64> {
        let idle = all.iter().filter(|(arm, phase, _)| *arm == wanted && *phase == Load::Idle);
        idle.flat_map(|(_, _, columns)| columns.rtt_ms().iter().copied().filter(|rtt| rtt.is_finite()))
            .collect()
    };
    let idle = [Arm::Off, Arm::On].map(|arm| (arm, idle_of(arm)));
    let idle_for = |arm: Arm, phase: Load| {
        let own = idle.iter().find(|(of, _)| *of == arm && phase != Load::Idle);
        own.map(|(_, rtts)| rtts.clone()).unwrap_or_default()
    };
    Ok(all
        .into_iter()
        .map(|(arm, phase, columns)| Series {
            name: format!("{phase} {arm}"),
            columns,
            idle_rtt_ms: idle_for(arm, phase),
        })
        .collect())
}

/// The kernel's time where there is one, else the program's.
fn columns(samples: &SampleColumns) -> Result<Columns, ImportError> {
    let n = samples.t_ms.len();
    if [samples.kernel_ms.len(), samples.user_ms.len(), samples.retransmits.len()] != [n; 3] {
        return Err(ImportError::Samples("sample columns of different length".into()));
    }
    let mut columns = Columns::default();
    for i in 0..n {
        let answered = samples.user_ms[i];
        let rtt = answered.and(samples.kernel_ms[i]).or(answered);
        columns.push_counted(samples.t_ms[i], rtt, samples.retransmits[i])?;
    }
    Ok(columns)
}
