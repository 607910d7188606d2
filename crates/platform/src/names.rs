//! Names by the system's own resolver, the way every program takes: getaddrinfo(3).

use std::ffi::{CStr, CString};

/// What the resolver said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The name has addresses.
    Found,
    /// There is no such name, or it has no address: an answer too.
    NoSuchName,
    /// No answer, in the system's words.
    Failed(String),
}

/// Asks for all addresses of `name`; blocks as long as the system's resolver takes, which may be half a minute.
pub fn look_up(name: &str) -> Lookup {
    let Ok(name) = CString::new(name) else { return Lookup::NoSuchName };
    // SAFETY: all-zero is a valid value of this plain C struct: any family, no flags.
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_socktype = libc::SOCK_STREAM;
    let mut found = std::ptr::null_mut();
    // SAFETY: name and hints outlive the call; the result goes into `found`, which is freed once on success.
    let code = unsafe {
        let code = libc::getaddrinfo(name.as_ptr(), std::ptr::null(), &raw const hints, &raw mut found);
        if code == 0 {
            libc::freeaddrinfo(found);
        }
        code
    };
    match code {
        0 => Lookup::Found,
        libc::EAI_NONAME | libc::EAI_NODATA => Lookup::NoSuchName,
        code => Lookup::Failed(message(code)),
    }
}

fn message(code: libc::c_int) -> String {
    // SAFETY: gai_strerror returns a static text for every code.
    unsafe { CStr::from_ptr(libc::gai_strerror(code)) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_this_machine_is_found_without_a_network() {
        assert_eq!(look_up("localhost"), Lookup::Found);
        assert_eq!(look_up("127.0.0.1"), Lookup::Found);
        assert_eq!(look_up("with\0zero"), Lookup::NoSuchName);
    }

    #[test]
    fn a_failure_has_words() {
        assert!(!message(libc::EAI_AGAIN).is_empty());
    }
}
