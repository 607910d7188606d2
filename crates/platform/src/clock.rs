//! The one place that reads clocks and sleeps.

use std::io;
use std::time::Duration;
use units::Timestamp;

/// Now on CLOCK_MONOTONIC, in nanoseconds since boot without suspend. All processes of one machine share it.
pub fn now() -> Timestamp {
    Timestamp::from_nanos(read(libc::CLOCK_MONOTONIC))
}

/// Now on the wall clock, in nanoseconds since 1970-01-01 UTC. For run documents and for kernel packet
/// timestamps, which use this clock; it may step.
pub fn wall_now() -> Timestamp {
    Timestamp::from_nanos(read(libc::CLOCK_REALTIME))
}

/// Time that the calling thread has run on a CPU since its start.
pub fn thread_cpu_time() -> Duration {
    Duration::from_nanos(read(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// What to add to a wall-clock timestamp of now to get a monotonic one, in nanoseconds (signed, since the
/// monotonic epoch is later). The closest of three readings, so that being interrupted within one does no harm.
pub fn wall_to_monotonic_ns() -> i128 {
    let read_once = || {
        let (before, wall, after) = (now(), wall_now(), now());
        let middle = i128::from(before.as_nanos()) + i128::from((after - before).as_nanos() as u64) / 2;
        (after - before, middle - i128::from(wall.as_nanos()))
    };
    read_once().min(read_once()).min(read_once()).1
}

/// The granularity the kernel states for CLOCK_MONOTONIC (1 ns with high-resolution timers).
pub fn resolution() -> Duration {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `spec` is a valid, writable timespec for the duration of the call.
    let rc = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &raw mut spec) };
    assert_eq!(rc, 0, "CLOCK_MONOTONIC exists on every Linux");
    Duration::new(spec.tv_sec as u64, spec.tv_nsec as u32)
}

/// Sleeps until `deadline` on the monotonic clock; returns at once when it has passed. Signals do not end it.
pub fn sleep_until(deadline: Timestamp) {
    let nanos = deadline.as_nanos();
    let spec =
        libc::timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 };
    loop {
        // SAFETY: `spec` is a valid timespec and no remainder is asked for (absolute time).
        let rc = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const spec,
                std::ptr::null_mut(),
            )
        };
        if rc != libc::EINTR {
            return;
        }
    }
}

/// Makes timers of the calling thread as exact as the kernel can (default slack is 50 us).
///
/// # Errors
/// When prctl refuses, which no known kernel does.
pub fn set_exact_timers() -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and touches no memory of ours.
    let rc = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `spec` is a valid, writable timespec for the duration of the call.
    let rc = unsafe { libc::clock_gettime(clock, &raw mut spec) };
    assert_eq!(rc, 0, "these clocks exist on every Linux");
    spec.tv_sec as u64 * 1_000_000_000 + spec.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_never_goes_back() {
        let mut last = now();
        for _ in 0..10_000 {
            let next = now();
            assert!(next >= last);
            last = next;
        }
    }

    #[test]
    fn sleeping_never_ends_early() {
        let deadline = now() + Duration::from_millis(2);
        sleep_until(deadline);
        assert!(now() >= deadline);
        sleep_until(Timestamp::ZERO);
    }

    #[test]
    fn wall_times_convert_to_monotonic_times() {
        let before = now();
        let converted = i128::from(wall_now().as_nanos()) + wall_to_monotonic_ns();
        let error = converted - i128::from(before.as_nanos());
        assert!(error.abs() < 100_000_000, "off by {error} ns");
    }
}
