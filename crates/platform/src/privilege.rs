//! Whether the caller may change packet handling in its network namespace.

use crate::netlink::{Message, Netlink, NetlinkError, Protocol};

/// Why packet rules cannot be used here.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// CAP_NET_ADMIN is not held over the caller's network namespace.
    #[error("CAP_NET_ADMIN is not held in this network namespace")]
    Missing,
    /// The kernel has no nf_tables.
    #[error("the kernel has no nf_tables (module nf_tables): {0}")]
    NoNfTables(NetlinkError),
    /// Anything else.
    #[error(transparent)]
    Other(NetlinkError),
}

/// Asks the kernel for the generation of its packet rules, which it tells only to those who may change them.
/// That is the privilege itself, not a guess from capability bits, which count for one user namespace only.
///
/// # Errors
/// Which of privilege and nf_tables is missing.
pub fn check_packet_rules() -> Result<(), PrivilegeError> {
    const GET_GENERATION: u16 = (libc::NFNL_SUBSYS_NFTABLES << 8 | libc::NFT_MSG_GETGEN) as u16;
    let mut netlink = match Netlink::open(Protocol::Netfilter) {
        Ok(netlink) => netlink,
        Err(error) if error.errno() == libc::EPROTONOSUPPORT => {
            return Err(PrivilegeError::NoNfTables(error));
        }
        Err(error) => return Err(PrivilegeError::Other(error)),
    };
    let request = Message::netfilter(GET_GENERATION, 0, 0, 0);
    match netlink.request("ask for packet rules", request) {
        Ok(_) => Ok(()),
        Err(error) => Err(match error.errno() {
            libc::EPERM | libc::EACCES => PrivilegeError::Missing,
            libc::EINVAL | libc::EOPNOTSUPP => PrivilegeError::NoNfTables(error),
            _ => PrivilegeError::Other(error),
        }),
    }
}
