//! How many descriptors this process may have open (man 2 getrlimit).

use std::io;

/// Raises the soft limit to the hard one, as every process may, and returns it. Systems set the soft one to 1024 for
/// the sake of programs that use select(), which we do not.
///
/// # Errors
/// When the kernel refuses.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid and writable.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } < 0 {
        return Err(io::Error::last_os_error());
    }
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is valid for the call.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_and_stays() {
        let limit = raise_descriptor_limit().unwrap();
        assert!(limit > 2, "{limit}");
        assert_eq!(raise_descriptor_limit().unwrap(), limit);
    }
}
