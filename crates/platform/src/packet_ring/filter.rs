//! Which frames a ring receives, decided in the kernel.

use super::socket::set_option;
use std::io;
use std::os::fd::OwnedFd;

/// Which frames a ring receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All of them.
    All,
    /// TCP segments with SYN set, over IPv4 and IPv6 (without extension headers): handshakes.
    TcpSyn,
}

/// Classic BPF (the kernel's Documentation/networking/filter.rst).
const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
const LOAD_BYTE_INDEXED: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_IND) as u16;
const LOAD_IP_HEADER_LENGTH: u16 = (libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// (instruction, jump if true, jump if false, operand); offsets from the Ethernet header on.
const TCP_SYN: [(u16, u8, u8, u32); 14] = [
    (LOAD_HALF, 0, 0, 12),
    (IF_EQUAL, 0, 5, 0x0800),
    (LOAD_BYTE, 0, 0, 14 + 9),
    (IF_EQUAL, 0, 9, 6),
    (LOAD_IP_HEADER_LENGTH, 0, 0, 14),
    (LOAD_BYTE_INDEXED, 0, 0, 14 + 13),
    (IF_ANY_BIT, 5, 6, 0x02),
    (IF_EQUAL, 0, 5, 0x86dd),
    (LOAD_BYTE, 0, 0, 14 + 6),
    (IF_EQUAL, 0, 3, 6),
    (LOAD_BYTE, 0, 0, 14 + 40 + 13),
    (IF_ANY_BIT, 0, 1, 0x02),
    (RETURN, 0, 0, 0x0004_0000),
    (RETURN, 0, 0, 0),
];

impl Filter {
    pub(super) fn attach(self, socket: &OwnedFd) -> io::Result<()> {
        if self == Self::All {
            return Ok(());
        }
        let mut program = TCP_SYN.map(|(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k });
        let head = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // The kernel copies the program during the call.
        set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &head)
    }
}
