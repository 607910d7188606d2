//! The only crate that touches the operating system: sockets, clocks, namespaces, netlink, packet queues.
//!
//! It translates and decides nothing: a decision belongs in a pure crate, where it can be tested in virtual
//! time. It is the only crate with `cfg(target_os)`, `unsafe` and FFI, each `unsafe` with its SAFETY line.

#![expect(unsafe_code, reason = "this is the crate that calls the operating system")]

pub mod clock;
pub mod datapath;
pub mod gateway;
pub mod links;
pub mod names;
pub mod namespace;
pub mod netlink;
pub mod nfqueue;
pub mod nft;
pub mod packet_ring;
pub mod poll;
pub mod privilege;
pub mod process;
pub mod random;
pub mod route;
pub mod sched;
pub mod tcp;
pub mod udp;
