//! TCP sockets as the prober and the load need them: non-blocking, with the kernel's own measurements.
//!
//! Everything that socket2 offers goes through it; `unsafe` remains only for `TCP_INFO` and
//! `TCP_NOTSENT_LOWAT`.

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::ffi::c_int;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

/// How far a non-blocking connect has come when the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connecting {
    /// The handshake ended inside the call.
    Done,
    /// The SYN is on its way; the socket becomes writable when the handshake ends, well or badly
    /// ([`TcpSocket::take_error`] tells). Linux says so over loopback too, though the answer is there already.
    InProgress,
}

/// A non-blocking TCP socket, closed on exec and on drop.
#[derive(Debug)]
pub struct TcpSocket(Socket);

impl TcpSocket {
    /// Opens an unconnected socket of the family of `peer`.
    ///
    /// # Errors
    /// When the system refuses a socket (descriptors used up, family not supported).
    pub fn open(peer: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }

    /// Opens a listening socket with `SO_REUSEADDR`. An IPv6 one does not take IPv4 connections, so that both
    /// families can listen on one port. Port 0 lets the kernel choose.
    ///
    /// # Errors
    /// When the address is in use, not ours, or the port is privileged.
    pub fn listen(address: SocketAddr, backlog: i32) -> io::Result<Self> {
        let socket = Self::open(address)?;
        socket.0.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.0.set_only_v6(true)?;
        }
        socket.0.bind(&SockAddr::from(address))?;
        socket.0.listen(backlog)?;
        Ok(socket)
    }

    /// Starts the handshake with `peer`.
    ///
    /// # Errors
    /// When it fails at once: no route, no free port.
    pub fn connect(&self, peer: SocketAddr) -> io::Result<Connecting> {
        match self.0.connect(&SockAddr::from(peer)) {
            Ok(()) => Ok(Connecting::Done),
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(Connecting::InProgress),
            Err(error) => Err(error),
        }
    }

    /// Takes one waiting connection, non-blocking too; `None` when there is none.
    ///
    /// # Errors
    /// When accept fails, for instance with all descriptors used up. A connection that the peer has already
    /// given up is not an error.
    pub fn accept(&self) -> io::Result<Option<(Self, SocketAddr)>> {
        loop {
            return match self.0.accept() {
                Ok((socket, peer)) => {
                    socket.set_nonblocking(true)?;
                    let peer = peer.as_socket().ok_or(io::ErrorKind::InvalidData)?;
                    Ok(Some((Self(socket), peer)))
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                Err(error) if is_of_the_dead_connection(&error) => continue,
                Err(error) => Err(error),
            };
        }
    }

    /// The address this socket is bound to.
    ///
    /// # Errors
    /// When the socket has none.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()?.as_socket().ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    /// The error that ended the handshake or the connection, once; `None` when all is well (`SO_ERROR`).
    ///
    /// # Errors
    /// When the option cannot be read.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.0.take_error()
    }

    /// Makes the close send a RST and discard unsent data (`SO_LINGER` 0): no TIME_WAIT, no port used up, no
    /// queue drained after a phase. Only for connections to one's own server.
    ///
    /// # Errors
    /// When the option is refused.
    pub fn reset_on_close(&self) -> io::Result<()> {
        self.0.set_linger(Some(Duration::ZERO))
    }

    /// Sends small segments at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// When the option is refused.
    pub fn set_no_delay(&self) -> io::Result<()> {
        self.0.set_tcp_nodelay(true)
    }

    /// Makes the socket writable only below `bytes` of unsent data (`TCP_NOTSENT_LOWAT`), so that little waits
    /// in the sender's own socket buffer.
    ///
    /// # Errors
    /// When the option is refused.
    pub fn set_not_sent_low_water(&self, bytes: u32) -> io::Result<()> {
        // SAFETY: the option takes a 4-byte unsigned integer; pointer and length describe `bytes`, which
        // outlives the call.
        let rc = unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_NOTSENT_LOWAT,
                (&raw const bytes).cast(),
                size_of::<u32>() as libc::socklen_t,
            )
        };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Chooses the congestion control, by the kernel's name for it (`TCP_CONGESTION`).
    ///
    /// # Errors
    /// `NotFound` when the kernel has none of that name, `PermissionDenied` when an ordinary user may not
    /// choose it.
    pub fn set_congestion(&self, name: &str) -> io::Result<()> {
        self.0.set_tcp_congestion(name.as_bytes())
    }

    /// The congestion control in use.
    ///
    /// # Errors
    /// When the option cannot be read.
    pub fn congestion(&self) -> io::Result<String> {
        let name = self.0.tcp_congestion()?;
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        Ok(String::from_utf8_lossy(&name[..end]).into_owned())
    }

    /// What the kernel knows about this connection (`TCP_INFO`).
    ///
    /// # Errors
    /// When the option cannot be read.
    pub fn info(&self) -> io::Result<TcpInfo> {
        let mut raw = [0_u8; RAW_INFO_BYTES];
        let mut length = RAW_INFO_BYTES as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into `raw`, which is that long, and stores the
        // number written in `length`; both outlive the call.
        let rc = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                raw.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if rc != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(TcpInfo::parse(&raw[..RAW_INFO_BYTES.min(length as usize)]))
    }
}

impl AsFd for TcpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Read for &TcpSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buffer)
    }
}

impl Write for &TcpSocket {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        (&self.0).write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// accept(2): errors already pending on the new connection are passed on by accept and mean "try the next one".
fn is_of_the_dead_connection(error: &io::Error) -> bool {
    const OF_THE_PEER: [c_int; 10] = [
        libc::EINTR,
        libc::ECONNABORTED,
        libc::ENETDOWN,
        libc::EPROTO,
        libc::ENOPROTOOPT,
        libc::EHOSTDOWN,
        libc::ENONET,
        libc::EHOSTUNREACH,
        libc::EOPNOTSUPP,
        libc::ENETUNREACH,
    ];
    error.raw_os_error().is_some_and(|code| OF_THE_PEER.contains(&code))
}

/// More than the longest `struct tcp_info` known (about 250 bytes in Linux 6.18).
const RAW_INFO_BYTES: usize = 512;

/// The kernel's figures of one connection. Fields that an older kernel does not report are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed RTT. Right after connect it is the RTT of SYN and SYN-ACK by the kernel's own clock, exact to
    /// 1 us; after a retransmitted SYN it comes from TCP timestamps in whole ms.
    pub rtt: Duration,
    /// Smoothed mean deviation of the RTT.
    pub rtt_variation: Duration,
    /// Segments retransmitted over the life of the connection, SYNs included.
    pub total_retransmits: u32,
    /// Segments the sender takes for lost at this moment.
    pub lost: u32,
    /// Congestion window in segments.
    pub congestion_window: u32,
    /// Sending maximum segment size in bytes.
    pub send_mss: u32,
    /// Bytes acknowledged by the peer (Linux 4.1).
    pub bytes_acknowledged: Option<u64>,
    /// Bytes received in order (Linux 4.1).
    pub bytes_received: Option<u64>,
    /// Segments sent, retransmissions included (Linux 4.2).
    pub segments_out: Option<u32>,
    /// Segments with data sent, retransmissions included (Linux 4.6).
    pub data_segments_out: Option<u32>,
    /// The smallest RTT seen (Linux 4.6). `None` too before the first sample.
    pub min_rtt: Option<Duration>,
    /// The latest delivery rate in byte/s (Linux 4.9).
    pub delivery_rate_bytes_per_s: Option<u64>,
    /// Time with data outstanding (Linux 4.10).
    pub busy: Option<Duration>,
    /// Part of `busy` in which the peer's receive window was the limit (Linux 4.10).
    pub receive_window_limited: Option<Duration>,
    /// Part of `busy` in which the own send buffer was the limit (Linux 4.10).
    pub send_buffer_limited: Option<Duration>,
}

impl TcpInfo {
    /// Reads the prefix of `struct tcp_info` (include/uapi/linux/tcp.h) that this kernel has filled in; the
    /// structure only ever grows at its end, so an offset means the same field everywhere.
    fn parse(raw: &[u8]) -> Self {
        let micros = |offset| u64_at(raw, offset).map(Duration::from_micros);
        Self {
            rtt: Duration::from_micros(u64::from(u32_at(raw, 68).unwrap_or(0))),
            rtt_variation: Duration::from_micros(u64::from(u32_at(raw, 72).unwrap_or(0))),
            total_retransmits: u32_at(raw, 100).unwrap_or(0),
            lost: u32_at(raw, 32).unwrap_or(0),
            congestion_window: u32_at(raw, 80).unwrap_or(0),
            send_mss: u32_at(raw, 16).unwrap_or(0),
            bytes_acknowledged: u64_at(raw, 120),
            bytes_received: u64_at(raw, 128),
            segments_out: u32_at(raw, 136),
            // All bits set: no RTT has been taken yet.
            min_rtt: u32_at(raw, 148)
                .filter(|&micros| micros != u32::MAX)
                .map(|micros| Duration::from_micros(u64::from(micros))),
            data_segments_out: u32_at(raw, 156),
            delivery_rate_bytes_per_s: u64_at(raw, 160),
            busy: micros(168),
            receive_window_limited: micros(176),
            send_buffer_limited: micros(184),
        }
    }
}

fn u32_at(raw: &[u8], offset: usize) -> Option<u32> {
    let bytes = raw.get(offset..offset + 4)?;
    // `bytes` is 4 long by the range above.
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

fn u64_at(raw: &[u8], offset: usize) -> Option<u64> {
    let bytes = raw.get(offset..offset + 8)?;
    bytes.try_into().ok().map(u64::from_ne_bytes)
}

/// Names of the congestion controls that the kernel of this network namespace has loaded, in its order.
///
/// # Errors
/// When /proc/sys is not readable.
pub fn available_congestion_controls() -> io::Result<Vec<String>> {
    let list = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    Ok(list.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::poll::{Interest, Poller};

    fn loopback_pair(address: &str) -> (TcpSocket, TcpSocket) {
        let listener = TcpSocket::listen(address.parse().unwrap(), 8).unwrap();
        let address = listener.local_address().unwrap();
        let client = TcpSocket::open(address).unwrap();
        finish_connect(&client, address).unwrap();
        let (server, peer) = listener.accept().unwrap().unwrap();
        assert_eq!(peer, client.local_address().unwrap());
        assert!(listener.accept().unwrap().is_none());
        (client, server)
    }

    fn finish_connect(client: &TcpSocket, address: SocketAddr) -> io::Result<()> {
        if client.connect(address)? == Connecting::InProgress {
            let mut poller = Poller::new()?;
            poller.add(client, 1, Interest::WRITE)?;
            let events = poller.wait(clock::now() + Duration::from_secs(10))?;
            assert_eq!(events.len(), 1);
        }
        client.take_error()?.map_or(Ok(()), Err)
    }

    #[test]
    fn the_kernel_reports_the_handshake_of_both_families() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (client, _server) = loopback_pair(address);
            let info = client.info().unwrap();
            assert!(info.rtt < Duration::from_secs(1), "{info:?}");
            assert_eq!(info.total_retransmits, 0);
            assert!(info.segments_out.unwrap() >= 2, "SYN and ACK: {info:?}");
            assert_eq!(info.data_segments_out, Some(0));
            assert!(info.min_rtt.is_some());
        }
    }

    #[test]
    fn data_is_counted_by_the_kernel() {
        let (client, server) = loopback_pair("127.0.0.1:0");
        client.set_no_delay().unwrap();
        client.set_not_sent_low_water(65_536).unwrap();
        assert_eq!((&client).write(b"hello").unwrap(), 5);
        let mut poller = Poller::new().unwrap();
        poller.add(&server, 7, Interest::READ).unwrap();
        let events = poller.wait(clock::now() + Duration::from_secs(10)).unwrap();
        assert_eq!(events.iter().map(|event| event.token).collect::<Vec<_>>(), [7]);
        let mut buffer = [0; 16];
        assert_eq!((&server).read(&mut buffer).unwrap(), 5);
        assert_eq!(server.info().unwrap().bytes_received, Some(5));
        assert_eq!(client.info().unwrap().data_segments_out, Some(1));
    }

    #[test]
    fn a_reset_on_close_reaches_the_peer() {
        let (client, server) = loopback_pair("127.0.0.1:0");
        client.reset_on_close().unwrap();
        drop(client);
        let mut buffer = [0; 16];
        assert_eq!((&server).read(&mut buffer).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn congestion_control_is_chosen_by_name() {
        let names = available_congestion_controls().unwrap();
        assert!(names.iter().any(|name| name == "reno" || name == "cubic"), "{names:?}");
        let socket = TcpSocket::open("127.0.0.1:9".parse().unwrap()).unwrap();
        socket.set_congestion("reno").unwrap();
        assert_eq!(socket.congestion().unwrap(), "reno");
        let error = socket.set_congestion("no_such_cc").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn an_old_kernel_gives_the_fields_it_has() {
        let mut raw = [0_u8; 104];
        raw[68..72].copy_from_slice(&1234_u32.to_ne_bytes());
        raw[100..104].copy_from_slice(&3_u32.to_ne_bytes());
        let info = TcpInfo::parse(&raw);
        assert_eq!(info.rtt, Duration::from_micros(1234));
        assert_eq!(info.total_retransmits, 3);
        assert_eq!(info.segments_out, None);
        assert_eq!(info.min_rtt, None);
        assert_eq!(TcpInfo::parse(&[]).rtt, Duration::ZERO);
    }

    #[test]
    fn a_refused_connection_is_an_error_of_the_socket() {
        let listener = TcpSocket::listen("127.0.0.1:0".parse().unwrap(), 1).unwrap();
        let address = listener.local_address().unwrap();
        drop(listener);
        let socket = TcpSocket::open(address).unwrap();
        let error = finish_connect(&socket, address).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
