//! AF_PACKET sockets: open, set, bind.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A raw packet socket that receives nothing until it is bound with a protocol.
pub(super) fn packet_socket() -> io::Result<OwnedFd> {
    // SAFETY: plain system call; the returned descriptor is checked before it is owned.
    let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `raw` is a fresh descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Sets an option of level SOL_PACKET; `T` must be the plain C type that the option takes.
pub(super) fn packet_option<T: Copy>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    set_option(socket, libc::SOL_PACKET, option, value)
}

/// Makes the kernel stamp packets when they arrive at the interface, not when they reach this socket.
pub(super) fn stamp_at_arrival(socket: &OwnedFd) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)
}

/// Sets a socket option; `T` must be the plain C type that the option takes.
pub(super) fn set_option<T: Copy>(
    socket: &OwnedFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` lives through the call and its true length is passed; the kernel only reads it.
    let rc =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), len) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Binds to an interface; `protocol` 0 receives nothing.
pub(super) fn bind(socket: &OwnedFd, interface: &str, protocol: u16) -> io::Result<()> {
    let name = CString::new(interface)?;
    // SAFETY: `name` is NUL-terminated and lives through the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    // SAFETY: an all-zero sockaddr_ll is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index as i32;
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `address` lives through the call and its true length is passed.
    let rc = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Packets that found the ring full since the last call (PACKET_STATISTICS resets itself).
pub(super) fn drops_since_last_asked(socket: &OwnedFd) -> u32 {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: both pointers are valid and writable through the call, with the true length. On a failure, which no
    // kernel with a ring has, the zeros stay.
    unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut len,
        );
    }
    statistics.tp_drops
}
