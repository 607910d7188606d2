//! Offloads of an interface, by ethtool's ioctl (linux/ethtool.h).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Why offloads could not be changed.
#[derive(Debug, thiserror::Error)]
#[error("{operation} of {interface}: {source}")]
pub struct OffloadError {
    operation: &'static str,
    interface: String,
    source: io::Error,
}

const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
const NAME_BYTES: usize = 32;

/// Switches off all segmentation in the device, for TCP and UDP: packets that reach the other end are not larger
/// than the MTU. The stack goes on to build super-packets (GSO) and the kernel cuts them just above the device, so
/// that whoever sits above (a shaper) sees what it sees on a real host. Receive offload (GRO) is switched off too.
///
/// # Errors
/// ENODEV for an unknown interface, EPERM without the privilege over the namespace.
pub fn segmentation_off(interface: &str) -> Result<(), OffloadError> {
    let failed = |operation| {
        let interface = interface.to_owned();
        move |source| OffloadError { operation, interface, source }
    };
    let socket = control_socket().map_err(failed("open a control socket"))?;
    let names = feature_names(&socket, interface).map_err(failed("read the offloads"))?;
    switch_off(&socket, interface, &names).map_err(failed("switch segmentation off"))
}

fn is_unwanted(feature: &str) -> bool {
    feature.contains("segmentation") && feature != "tx-generic-segmentation"
        || feature == "tx-gso-list"
        || feature == "rx-gro"
}

fn switch_off(socket: &OwnedFd, interface: &str, names: &[String]) -> io::Result<()> {
    // struct ethtool_sfeatures: command, number of blocks, then (valid, requested) for each 32 features.
    let blocks = names.len().div_ceil(32);
    let mut request = vec![0u32; 2 + 2 * blocks];
    (request[0], request[1]) = (ETHTOOL_SFEATURES, blocks as u32);
    for (index, _) in names.iter().enumerate().filter(|(_, name)| is_unwanted(name)) {
        request[2 + 2 * (index / 32)] |= 1 << (index % 32);
    }
    ethtool(socket, interface, &mut request)
}

fn feature_names(socket: &OwnedFd, interface: &str) -> io::Result<Vec<String>> {
    // struct ethtool_sset_info: command, reserved, mask (64 bit), then one length for each set bit.
    let mut info = [ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_FEATURES, 0, 0];
    ethtool(socket, interface, &mut info)?;
    let count = info[4] as usize;
    // struct ethtool_gstrings: command, set, count, then the names of 32 bytes each.
    let mut strings = vec![0u32; 3 + count * NAME_BYTES / 4];
    (strings[0], strings[1], strings[2]) = (ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count as u32);
    ethtool(socket, interface, &mut strings)?;
    let bytes: Vec<u8> = strings[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let text = |name: &[u8]| String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
    Ok(bytes.chunks_exact(NAME_BYTES).map(text).collect())
}

fn control_socket() -> io::Result<OwnedFd> {
    // SAFETY: plain system call; the returned descriptor is checked before it is owned.
    let raw = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `raw` is a fresh descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// One ethtool request; `words` is the command's struct, which says its own length to the kernel.
fn ethtool(socket: &OwnedFd, interface: &str, words: &mut [u32]) -> io::Result<()> {
    // SAFETY: an all-zero ifreq is valid: empty name, null data.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (slot, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *slot = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: `request` and `words` live through the call; each caller sizes `words` by the count it states in it.
    let rc = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_segmentation_stays() {
        for name in
            ["tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-udp-segmentation", "tx-gso-list", "rx-gro"]
        {
            assert!(is_unwanted(name), "{name}");
        }
        for name in ["tx-generic-segmentation", "tx-checksum-ip-generic", "tx-scatter-gather", "rx-gro-hw"] {
            assert!(!is_unwanted(name), "{name}");
        }
    }

    #[test]
    fn the_loopback_interface_tells_its_offloads() {
        let socket = control_socket().unwrap();
        let names = feature_names(&socket, "lo").unwrap();
        assert!(names.iter().any(|name| name == "tx-tcp-segmentation"), "{names:?}");
        let error = segmentation_off("nowhere0").unwrap_err();
        assert_eq!(error.source.raw_os_error(), Some(libc::ENODEV), "{error}");
    }
}
