//! How fast an interface says it is (ethtool, `linux/ethtool.h`).

use super::Interface;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use units::Rate;

/// `struct ethtool_cmd`, 44 bytes, of which only the speed is read.
#[repr(C)]
struct EthtoolCommand {
    command: u32,
    supported: u32,
    advertising: u32,
    speed_low: u16,
    rest: [u8; 14],
    speed_high: u16,
    tail: [u8; 12],
}

const _: () = assert!(size_of::<EthtoolCommand>() == 44);

const ETHTOOL_GSET: u32 = 1;

/// The rate that the interface's driver states; `None` where it states none. A TUN device states a constant
/// (10 Mbit/s) that means nothing, so it counts as none.
pub fn link_speed(interface: &Interface) -> Option<Rate> {
    if interface.kind.as_deref() == Some("tun") {
        return None;
    }
    let mbit = ask_driver(&interface.name).ok()?;
    let is_known = mbit != 0 && mbit < i32::MAX.cast_unsigned();
    is_known.then(|| Rate::mbit_per_s(mbit.into()))
}

fn ask_driver(name: &str) -> io::Result<u32> {
    // SAFETY: plain system call; the returned descriptor is checked before it is owned.
    let raw = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `raw` is a fresh descriptor that nothing else owns.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: all-zero is a valid value of these plain C structs.
    let (mut command, mut request): (EthtoolCommand, libc::ifreq) = unsafe { std::mem::zeroed() };
    command.command = ETHTOOL_GSET;
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_data = (&raw mut command).cast();
    // SAFETY: the request points to `command`, which has the size that ETHTOOL_GSET writes and outlives the call.
    let rc = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u32::from(command.speed_high) << 16 | u32::from(command.speed_low))
}
