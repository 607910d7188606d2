//! UDP sockets with the kernel's arrival times.

use crate::clock;
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;
use units::Timestamp;

/// A datagram that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its length; what did not fit into the buffer is lost.
    pub bytes: usize,
    /// Who sent it.
    pub from: SocketAddr,
    /// When the kernel took it in, on the monotonic clock; when it was read, where the kernel did not say.
    pub at: Timestamp,
}

/// A non-blocking UDP socket, closed on exec and on drop.
#[derive(Debug)]
pub struct UdpSocket(Socket);

impl UdpSocket {
    /// A socket bound to `address` (port 0: one that is free). An IPv6 one does not take IPv4 datagrams.
    ///
    /// # Errors
    /// When the address is in use, not ours, or the port is privileged.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&SockAddr::from(address))?;
        set_timestamps(&socket)?;
        Ok(Self(socket))
    }

    /// A socket that talks to `peer` alone: the kernel drops what others send.
    ///
    /// # Errors
    /// When there is no route or no free port.
    pub fn connect(peer: SocketAddr) -> io::Result<Self> {
        let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        // Both are addresses.
        let socket = Self::bind(any.parse().map_err(|_| io::ErrorKind::InvalidInput)?)?;
        socket.0.connect(&SockAddr::from(peer))?;
        Ok(socket)
    }

    /// The address this socket is bound to.
    ///
    /// # Errors
    /// When the socket has none.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()?.as_socket().ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    /// Sends a datagram to the peer of [`connect`](Self::connect).
    ///
    /// # Errors
    /// `WouldBlock` when the send buffer is full; what ICMP has said of earlier ones (`ConnectionRefused`).
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.send(bytes).map(drop)
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// `WouldBlock` when the send buffer is full, or when the network refuses it.
    pub fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        self.0.send_to(bytes, &SockAddr::from(to)).map(drop)
    }

    /// Takes one datagram that waits; `None` when there is none.
    ///
    /// # Errors
    /// What ICMP has said of one that was sent before.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
        // SAFETY: all-zero is a valid value of both plain C structs.
        let (mut name, mut header): (libc::sockaddr_storage, libc::msghdr) = unsafe { std::mem::zeroed() };
        let mut control = ControlBuffer([0; CONTROL_BYTES]);
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        header.msg_name = (&raw mut name).cast();
        header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = CONTROL_BYTES as _;
        // SAFETY: name, buffer and control outlive the call and have the lengths that the header states.
        let got = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut header, 0) };
        let Ok(bytes) = usize::try_from(got) else {
            let error = io::Error::last_os_error();
            let nothing = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
            return if nothing { Ok(None) } else { Err(error) };
        };
        // SAFETY: the kernel has filled `name` with an address of the length it stored; the storage type of socket2 is
        // transparent over it.
        let from =
            unsafe { SockAddr::new((&raw const name).cast::<SockAddrStorage>().read(), header.msg_namelen) };
        let from = from.as_socket().ok_or(io::ErrorKind::InvalidData)?;
        Ok(Some(Arrival { bytes, from, at: arrival_time(&header) }))
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Room for one timestamp with its header.
const CONTROL_BYTES: usize = 64;

/// Aligned as control messages must be.
#[repr(align(8))]
struct ControlBuffer([u8; CONTROL_BYTES]);

fn set_timestamps(socket: &Socket) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option takes an int; pointer and length describe `on`, which outlives the call.
    let rc = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The kernel stamps by the wall clock: what counts is how long ago that was.
fn arrival_time(header: &libc::msghdr) -> Timestamp {
    let (now, wall) = (clock::now(), clock::wall_now());
    let Some(stamp) = kernel_stamp(header) else { return now };
    let ago = wall.saturating_since(stamp);
    // A step of the wall clock in between would make nonsense of it; nothing waits that long to be read.
    if ago > Duration::from_secs(10) { now } else { now.saturating_back(ago) }
}

fn kernel_stamp(header: &libc::msghdr) -> Option<Timestamp> {
    // SAFETY: the header is the one that recvmsg has just filled; its control buffer is alive and aligned.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: FIRSTHDR and NXTHDR give null or a whole message header within the control buffer.
    while let Some(this) = unsafe { message.as_ref() } {
        if (this.cmsg_level, this.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            // SAFETY: a message of this type holds a timespec; read_unaligned asks for no alignment.
            let stamp: libc::timespec =
                unsafe { libc::CMSG_DATA(message).cast::<libc::timespec>().read_unaligned() };
            return Some(Timestamp::from_nanos(stamp.tv_sec as u64 * 1_000_000_000 + stamp.tv_nsec as u64));
        }
        // SAFETY: as above.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::wait_readable;

    #[test]
    fn datagrams_go_both_ways_with_their_arrival_times() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let server = UdpSocket::bind(any.parse().unwrap()).unwrap();
            let client = UdpSocket::connect(server.local_address().unwrap()).unwrap();
            let mut buffer = [0; 100];
            assert_eq!(server.receive(&mut buffer).unwrap(), None);
            let before = clock::now();
            client.send(b"ping").unwrap();
            let deadline = clock::now() + Duration::from_secs(10);
            assert!(wait_readable(server.as_fd(), deadline).unwrap());
            // Read late: the arrival time must not move with it.
            clock::sleep_until(clock::now() + Duration::from_millis(20));
            let got = server.receive(&mut buffer).unwrap().unwrap();
            assert_eq!(&buffer[..got.bytes], b"ping");
            let (after, slack) = (got.at.saturating_since(before), Duration::from_millis(1));
            assert!(
                got.at + slack >= before && clock::now() - got.at > Duration::from_millis(19),
                "{after:?}"
            );
            server.send_to(b"pong!", got.from).unwrap();
            assert!(wait_readable(client.as_fd(), clock::now() + Duration::from_secs(10)).unwrap());
            assert_eq!(client.receive(&mut buffer).unwrap().unwrap().bytes, 5);
        }
    }

    #[test]
    fn a_taken_port_is_refused() {
        let first = UdpSocket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let error = UdpSocket::bind(first.local_address().unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
