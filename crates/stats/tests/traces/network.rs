//! What networks do to a round trip: queues, retransmission, radio, routes.

use super::random::Random;
use stats::Probe;

/// When a lost handshake is sent again.
#[derive(Clone, Copy)]
pub struct Ladder {
    pub rto_ms: f64,
    /// 1, 1, 1, 1, 1, 2, 4 times the timeout (Linux since 2023) rather than doubling (RFC 6298 section 5.5).
    pub linear: bool,
}

impl Ladder {
    /// The delay that `losses` lost handshakes add, in ms.
    fn delay_ms(self, losses: u32) -> f64 {
        if self.linear {
            self.rto_ms * f64::from(losses)
        } else {
            self.rto_ms * (2_f64.powf(f64::from(losses)) - 1.0)
        }
    }
}

/// Loses probes in bursts of the given mean length; each waits for its retransmission or is given up.
/// Gives the number of probes hit.
pub fn retransmit(
    random: &mut Random,
    probes: &mut [Probe],
    ladder: Ladder,
    share: f64,
    mean_burst: f64,
) -> usize {
    let give_up_ms = if ladder.rto_ms > 2000.0 { 25_000.0 } else { 10_000.0 };
    let late_timer = random.chance(0.3);
    let start = share / (mean_burst * (1.0 - share));
    let mut bad = false;
    let mut hit = 0;
    for (i, probe) in probes.iter_mut().enumerate() {
        bad = if bad { random.chance(1.0 - 1.0 / mean_burst) } else { random.chance(start) };
        // One loss at least, or the label would be wrong.
        let forced = hit == 0 && i == 20;
        if !bad && !forced {
            continue;
        }
        hit += 1;
        let mut losses = 1;
        while random.chance(share.max(if mean_burst > 1.0 { 0.2 } else { 0.0 })) {
            losses += 1;
        }
        let slack_ms =
            if late_timer { random.between(0.0, 0.035 * ladder.rto_ms) } else { random.exponential(5.0) };
        let delay_ms = ladder.delay_ms(losses) + slack_ms;
        probe.rtt_ms = probe.rtt_ms.map(|rtt| rtt + delay_ms).filter(|&rtt| rtt < give_up_ms);
    }
    hit
}

/// The queue's state moves on in steps of this length.
const STEP_MS: f64 = 10.0;

/// A drop-tail queue that loss-based flows fill in a sawtooth.
pub struct Queue {
    buffer_ms: f64,
    flows: usize,
    /// Multiplicative decrease: a half for Reno, 0.7 for CUBIC (RFC 9438 section 4.6).
    decrease: f64,
    /// Seconds from one overflow to the next.
    cycle_s: f64,
    /// When the load starts, as a share of the run.
    starts: f64,
}

impl Queue {
    pub fn fifo(random: &mut Random, low_ms: f64, high_ms: f64) -> Self {
        let buffer_ms = random.log_between(low_ms, high_ms);
        let flows = random.pick(&[1.0, 2.0, 4.0, 8.0]) as usize;
        let cycle_s = random.log_between(0.7, 12.0) * (buffer_ms / 150.0).sqrt().max(0.6);
        Self { buffer_ms, flows, decrease: random.pick(&[0.5, 0.7]), cycle_s, starts: 0.0 }
    }

    pub fn ramp(random: &mut Random, low_ms: f64, high_ms: f64) -> Self {
        let starts = random.between(0.03, 0.6);
        Self { starts, ..Self::fifo(random, low_ms, high_ms) }
    }

    /// The queueing delay met at each time, in ms.
    pub fn delays(&self, random: &mut Random, times_ms: &[f64]) -> Vec<f64> {
        let end_ms = times_ms.last().copied().unwrap_or(0.0);
        let start_ms = end_ms * self.starts;
        let pipe_ms = self.buffer_ms * random.between(0.1, 0.9);
        let full_ms = pipe_ms + self.buffer_ms;
        // What overflow takes away is what a cycle has to bring back.
        let per_cycle = full_ms * (1.0 - self.decrease) / self.flows as f64 * (self.flows as f64).sqrt();
        let growth_per_ms = per_cycle / (1000.0 * self.cycle_s);
        let fill = if self.starts > 0.0 { 0.2 } else { random.between(0.5, 1.0) };
        let mut windows: Vec<f64> =
            (0..self.flows).map(|_| full_ms * fill / self.flows as f64 * random.between(0.6, 1.4)).collect();
        let mut last_ms = start_ms;
        let settled = windows.iter().sum::<f64>() - pipe_ms;
        let mut queue_ms = if self.starts > 0.0 { 0.0 } else { settled.clamp(0.0, self.buffer_ms) };
        times_ms
            .iter()
            .map(|&now_ms| {
                while last_ms + STEP_MS < now_ms && now_ms > start_ms {
                    last_ms += STEP_MS;
                    self.step(random, &mut windows, growth_per_ms * STEP_MS, full_ms);
                    // A queue drains no faster than the link sends, and fills no faster than twice that.
                    let wanted = (windows.iter().sum::<f64>() - pipe_ms).clamp(0.0, self.buffer_ms);
                    queue_ms = wanted.clamp(queue_ms - STEP_MS, queue_ms + STEP_MS);
                }
                // A packet of the load in front, or not.
                let in_front_ms =
                    if queue_ms > 0.0 { random.between(0.0, 0.5 + 0.02 * self.buffer_ms) } else { 0.0 };
                queue_ms + in_front_ms
            })
            .collect()
    }

    fn step(&self, random: &mut Random, windows: &mut [f64], growth: f64, full_ms: f64) {
        let share = growth / windows.len() as f64;
        for window in windows.iter_mut() {
            *window += share * random.between(0.5, 1.5) * (self.flows as f64).sqrt();
        }
        while windows.iter().sum::<f64>() > full_ms {
            let loser = (random.uniform() * windows.len() as f64) as usize;
            windows[loser] *= self.decrease;
        }
    }
}

/// Idle, then a queue that rises in less than a second and stays full, as under BBR or a policer's shaper.
pub fn plateau(random: &mut Random, times_ms: &[f64]) -> Vec<f64> {
    let end_ms = times_ms.last().copied().unwrap_or(0.0);
    let start_ms = end_ms * random.between(0.03, 0.4);
    let (height, rise_ms) = (random.between(40.0, 200.0), random.between(200.0, 1500.0));
    let ripple = random.between(0.01, 0.06) * height;
    let mut level = 0.0;
    times_ms
        .iter()
        .map(|&now| {
            level = 0.8 * level + 0.6 * ripple * random.normal();
            let filled = 1.0 - (-(now - start_ms) / rise_ms).exp();
            if now < start_ms { 0.0 } else { (height * filled + level).max(0.0) }
        })
        .collect()
}

/// Radio: one probe in twenty meets retries on the air, now and then two in a row.
pub fn wifi(random: &mut Random, times_ms: &[f64]) -> Vec<f64> {
    let share = random.between(0.02, 0.07).max(6.0 / times_ms.len() as f64);
    let (mean_ms, repeat) = (random.between(15.0, 45.0), random.between(0.0, 0.4));
    let mut spike = false;
    times_ms
        .iter()
        .map(|_| {
            spike = random.chance(share) || spike && random.chance(repeat);
            if spike { 6.0 + random.exponential(mean_ms) } else { 0.0 }
        })
        .collect()
}

/// A station that looks for other networks every few seconds and is deaf for a moment.
pub fn scan(random: &mut Random, times_ms: &[f64]) -> Vec<f64> {
    let period_ms = random.between(3500.0, 10_000.0);
    let deaf_ms = random.between(150.0, 0.07 * period_ms);
    let (low, high) = (random.between(15.0, 35.0), random.between(60.0, 160.0));
    let phase = random.between(0.0, period_ms);
    let mut delays: Vec<f64> = times_ms
        .iter()
        .map(|now| if (now + phase) % period_ms < deaf_ms { random.between(low, high) } else { 0.0 })
        .collect();
    if delays.iter().filter(|&&d| d > 0.0).count() < 4 {
        for i in [13, 31, 53, 74] {
            delays[i] = random.between(low, high);
        }
    }
    delays
}

/// Few, single, large spikes.
pub fn isolated(random: &mut Random, times_ms: &[f64]) -> Vec<f64> {
    let share = random.between(0.01, 0.04).max(4.0 / times_ms.len() as f64);
    let (low, high) = (random.between(15.0, 40.0), random.between(80.0, 250.0));
    let mut delays: Vec<f64> = times_ms
        .iter()
        .map(|_| if random.chance(share) { random.log_between(low, high) } else { 0.0 })
        .collect();
    for i in [17, 58, 83] {
        delays[i] = random.log_between(low, high);
    }
    delays
}

/// One probe far out.
pub fn outlier(random: &mut Random, length: usize) -> Vec<f64> {
    let at = (random.uniform() * length as f64) as usize;
    let size = random.log_between(20.0, 150.0);
    (0..length).map(|i| if i == at { size } else { 0.0 }).collect()
}

/// Each probe takes one of several routes at random, as a hash of its port decides.
pub fn routes(random: &mut Random, length: usize, count: usize, low_ms: f64, high_ms: f64) -> Vec<f64> {
    let farthest = random.log_between(low_ms, high_ms);
    let share = random.between(0.15, 0.6);
    let steps: Vec<f64> = (1..count)
        .map(|i| {
            farthest * (i as f64 + if count > 2 { random.between(-0.2, 0.2) } else { 0.0 })
                / (count - 1) as f64
        })
        .collect();
    (0..length)
        .map(|_| {
            if random.chance(share.max(if count > 2 { 0.4 } else { 0.0 })) {
                steps[(random.uniform() * steps.len() as f64) as usize]
            } else {
                0.0
            }
        })
        .collect()
}

/// The route changes a few times in the run.
pub fn flap(random: &mut Random, length: usize) -> Vec<f64> {
    let step = random.log_between(8.0, 90.0);
    let dwell = length as f64 * random.between(0.12, 0.45);
    let (mut far, mut left) = (random.chance(0.5), dwell * random.between(0.5, 1.0));
    (0..length)
        .map(|_| {
            left -= 1.0;
            if left < 0.0 {
                far = !far;
                left = dwell * random.between(0.5, 1.5);
            }
            if far { step } else { 0.0 }
        })
        .collect()
}
