//! Netlink: build a message, send it, read the answer with the kernel's own words (extended ack).
//!
//! One small synchronous socket serves rtnetlink, nf_tables and nfnetlink_queue's configuration. The packet
//! path of NFQUEUE uses only [`Netlink::fd`]. Layout: `man 7 netlink`; attributes are length-type-value, padded
//! to 4 bytes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Which kernel subsystem a socket talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Links, addresses, routes, qdiscs.
    Route,
    /// nf_tables and nfnetlink_queue.
    Netfilter,
    /// Socket tables.
    SockDiag,
}

impl Protocol {
    const fn number(self) -> i32 {
        match self {
            Self::Route => libc::NETLINK_ROUTE,
            Self::Netfilter => libc::NETLINK_NETFILTER,
            Self::SockDiag => libc::NETLINK_SOCK_DIAG,
        }
    }
}

/// A refused or failed request.
#[derive(Debug, thiserror::Error)]
#[error("{operation}: {source}{}", text.as_deref().map(|t| format!(" (kernel says: {t})")).unwrap_or_default())]
pub struct NetlinkError {
    /// What was asked for, in words.
    pub operation: String,
    /// The system's error.
    pub source: io::Error,
    /// The kernel's extended error text, when it gave one.
    pub text: Option<String>,
}

impl NetlinkError {
    /// The errno behind the error, 0 when there is none.
    pub fn errno(&self) -> i32 {
        self.source.raw_os_error().unwrap_or(0)
    }
}

/// One answer of the kernel: message type and body (family header and attributes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// nlmsg_type.
    pub kind: u16,
    /// Everything after the netlink header.
    pub body: Vec<u8>,
}

/// A message under construction: netlink header, family header, attributes.
#[derive(Clone, Debug)]
pub struct Message {
    bytes: Vec<u8>,
}

const HEADER_BYTES: usize = 16;

impl Message {
    /// A message of `kind` with `flags` (NLM_F_REQUEST is added) and the family's fixed header.
    pub fn new(kind: u16, flags: u16, family_header: &[u8]) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | libc::NLM_F_REQUEST as u16).to_ne_bytes());
        bytes.extend_from_slice(family_header);
        let mut message = Self { bytes };
        message.pad();
        message
    }

    /// A message of an nfnetlink subsystem: `kind` is subsystem << 8 | message, the header names the protocol
    /// family and the resource (queue number), which goes out in network order.
    pub fn netfilter(kind: u16, flags: u16, family: u8, resource: u16) -> Self {
        let [high, low] = resource.to_be_bytes();
        Self::new(kind, flags, &[family, 0, high, low])
    }

    /// Appends an attribute with raw bytes.
    pub fn attr(mut self, kind: u16, value: &[u8]) -> Self {
        self.push_attr(kind, value);
        self
    }

    /// Appends an attribute with a 32-bit number in network order (nf_tables, nfnetlink_queue).
    pub fn attr_be32(self, kind: u16, value: u32) -> Self {
        self.attr(kind, &value.to_be_bytes())
    }

    /// Appends an attribute with a 32-bit number in host order (rtnetlink).
    pub fn attr_u32(self, kind: u16, value: u32) -> Self {
        self.attr(kind, &value.to_ne_bytes())
    }

    /// Appends a NUL-terminated text.
    pub fn attr_str(self, kind: u16, value: &str) -> Self {
        let mut text = value.as_bytes().to_vec();
        text.push(0);
        self.attr(kind, &text)
    }

    /// Appends an attribute that holds what `inner` appends.
    pub fn nested(mut self, kind: u16, inner: impl FnOnce(Self) -> Self) -> Self {
        let start = self.bytes.len();
        self.push_attr(kind | libc::NLA_F_NESTED as u16, &[]);
        let mut filled = inner(self);
        let len = (filled.bytes.len() - start) as u16;
        filled.bytes[start..start + 2].copy_from_slice(&len.to_ne_bytes());
        filled
    }

    /// Appends raw bytes, padded to 4 (a struct in front of attributes, inside a nested attribute).
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self.pad();
        self
    }

    /// The finished bytes with length and sequence number filled in.
    pub fn finish(mut self, seq: u32) -> Vec<u8> {
        let len = self.bytes.len() as u32;
        self.bytes[0..4].copy_from_slice(&len.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&seq.to_ne_bytes());
        self.bytes
    }

    fn push_attr(&mut self, kind: u16, value: &[u8]) {
        let len = (4 + value.len()) as u16;
        self.bytes.extend_from_slice(&len.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(value);
        self.pad();
    }

    fn pad(&mut self) {
        while !self.bytes.len().is_multiple_of(4) {
            self.bytes.push(0);
        }
    }
}

/// The attributes in `bytes`, as (type without flags, value). Stops at the first malformed one.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let len = usize::from(u16::from_ne_bytes(rest.get(0..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(rest.get(2..4)?.try_into().ok()?);
        let value = rest.get(4..len)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind & libc::NLA_TYPE_MASK as u16, value))
    })
}

/// The value of the first attribute of type `kind`.
pub fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(k, _)| *k == kind).map(|(_, value)| value)
}

/// A netlink socket for one request at a time.
#[derive(Debug)]
pub struct Netlink {
    fd: OwnedFd,
    seq: u32,
}

impl Netlink {
    /// Opens and binds a socket in the caller's network namespace; it stays in that namespace. Closed on exec.
    ///
    /// # Errors
    /// When the kernel lacks the protocol or refuses the socket.
    pub fn open(protocol: Protocol) -> Result<Self, NetlinkError> {
        Self::open_socket(protocol.number()).map_err(|source| NetlinkError {
            operation: format!("open a netlink socket ({protocol:?})"),
            source,
            text: None,
        })
    }

    fn open_socket(protocol: i32) -> io::Result<Self> {
        // SAFETY: plain system call; the returned descriptor is checked before it is owned.
        let raw = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `raw` is a fresh descriptor that nothing else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        // SAFETY: an all-zero sockaddr_nl is valid: the kernel chooses the port.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as u16;
        // SAFETY: `address` lives through the call and its true length is passed.
        let rc = unsafe {
            libc::bind(raw, (&raw const address).cast(), size_of::<libc::sockaddr_nl>() as libc::socklen_t)
        };
        if rc < 0 {
            return Err(io::Error::last_os_error());
        }
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
            // Old kernels lack these; then errors come without text.
            let one: libc::c_int = 1;
            // SAFETY: `one` lives through the call and its true length is passed.
            unsafe {
                libc::setsockopt(raw, libc::SOL_NETLINK, option, (&raw const one).cast(), 4);
            }
        }
        Ok(Self { fd, seq: 0 })
    }

    /// The descriptor, for poll and for the packet path.
    pub fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.fd.as_fd()
    }

    /// Sends one request and waits for its acknowledgement; answers before it are returned.
    ///
    /// # Errors
    /// The kernel's refusal, with its extended text where it gives one. `operation` names the request in words.
    pub fn request(&mut self, operation: &str, message: Message) -> Result<Vec<Reply>, NetlinkError> {
        let mut message = message;
        message.bytes[6] |= libc::NLM_F_ACK as u8;
        self.seq += 1;
        let seq = self.seq;
        self.exchange(&message.finish(seq), seq).map_err(|failure| failure.named(operation))
    }

    /// Sends several messages as one nf_tables transaction (BATCH_BEGIN .. BATCH_END): all or nothing.
    ///
    /// # Errors
    /// The refusal of the first message that failed.
    pub fn batch(&mut self, operation: &str, messages: Vec<Message>) -> Result<(), NetlinkError> {
        const NFNL_SUBSYS_NFTABLES: u16 = 10;
        let mut bytes = Vec::new();
        let mut next = |message: Message, seq: &mut u32| {
            *seq += 1;
            bytes.extend_from_slice(&message.finish(*seq));
        };
        let mut seq = self.seq;
        next(Message::netfilter(libc::NFNL_MSG_BATCH_BEGIN as u16, 0, 0, NFNL_SUBSYS_NFTABLES), &mut seq);
        let mut last = seq;
        for mut message in messages {
            message.bytes[6] |= libc::NLM_F_ACK as u8;
            next(message, &mut seq);
            last = seq;
        }
        next(Message::netfilter(libc::NFNL_MSG_BATCH_END as u16, 0, 0, NFNL_SUBSYS_NFTABLES), &mut seq);
        self.seq = seq;
        self.exchange(&bytes, last).map(drop).map_err(|failure| failure.named(operation))
    }

    /// Asks for a whole table (NLM_F_DUMP) and returns its entries.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn dump(&mut self, operation: &str, message: Message) -> Result<Vec<Reply>, NetlinkError> {
        let mut message = message;
        let flags = u16::from_ne_bytes([message.bytes[6], message.bytes[7]]) | libc::NLM_F_DUMP as u16;
        message.bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        self.seq += 1;
        let seq = self.seq;
        self.exchange(&message.finish(seq), seq).map_err(|failure| failure.named(operation))
    }

    fn exchange(&self, bytes: &[u8], last_seq: u32) -> Result<Vec<Reply>, Failure> {
        // SAFETY: the buffer is valid for its length.
        let sent = unsafe { libc::send(self.fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error().into());
        }
        let mut replies = Vec::new();
        let mut buffer = vec![0u8; 1 << 16];
        loop {
            // SAFETY: the buffer is valid and writable for its length.
            let got = unsafe {
                libc::recv(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_TRUNC)
            };
            if got < 0 {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(error.into());
            }
            if got as usize > buffer.len() {
                return Err(io::Error::other("netlink answer larger than 64 KB").into());
            }
            if take_datagram(&buffer[..got as usize], last_seq, &mut replies)? {
                return Ok(replies);
            }
        }
    }
}

/// Takes the messages of one datagram; true when the request `last_seq` is done.
fn take_datagram(datagram: &[u8], last_seq: u32, replies: &mut Vec<Reply>) -> Result<bool, Failure> {
    let mut rest = datagram;
    while rest.len() >= HEADER_BYTES {
        let word = |at: usize| u32::from_ne_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
        let (len, seq) = (word(0) as usize, word(8));
        let (kind, flags) = (u16::from_ne_bytes([rest[4], rest[5]]), u16::from_ne_bytes([rest[6], rest[7]]));
        let Some(body) = rest.get(HEADER_BYTES..len) else { break };
        match i32::from(kind) {
            libc::NLMSG_ERROR => {
                if let Some(failure) = read_error(body, flags) {
                    return Err(failure);
                }
                if seq == last_seq {
                    return Ok(true);
                }
            }
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_NOOP => {}
            _ => replies.push(Reply { kind, body: body.to_vec() }),
        }
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(false)
}

/// A failure before its operation is named.
struct Failure {
    source: io::Error,
    text: Option<String>,
}

impl Failure {
    fn named(self, operation: &str) -> NetlinkError {
        NetlinkError { operation: operation.to_owned(), source: self.source, text: self.text }
    }
}

impl From<io::Error> for Failure {
    fn from(source: io::Error) -> Self {
        Self { source, text: None }
    }
}

/// `None` for an acknowledgement, else the error with the extended text.
fn read_error(body: &[u8], flags: u16) -> Option<Failure> {
    const NLMSGERR_ATTR_MSG: u16 = 1;
    let code = i32::from_ne_bytes(body.get(0..4)?.try_into().ok()?);
    if code == 0 {
        return None;
    }
    let capped = flags & libc::NLM_F_CAPPED as u16 != 0;
    let request_len = body.get(4..8).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes) as usize;
    let skip = 4 + if capped { HEADER_BYTES } else { request_len.next_multiple_of(4) };
    let has_text = flags & libc::NLM_F_ACK_TLVS as u16 != 0;
    let text = (has_text.then(|| body.get(skip..)).flatten())
        .and_then(|attrs| attribute(attrs, NLMSGERR_ATTR_MSG))
        .map(|t| String::from_utf8_lossy(t).trim_end_matches('\0').to_owned());
    Some(Failure { source: io::Error::from_raw_os_error(-code), text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_attributes_read_back() {
        let message = Message::new(16, 0, &[1, 2, 3, 4])
            .attr_str(3, "lo")
            .nested(5, |m| m.attr_u32(1, 7))
            .attr(9, &[8]);
        let bytes = message.finish(42);
        assert_eq!(u32::from_ne_bytes(bytes[0..4].try_into().unwrap()) as usize, bytes.len());
        let attrs = &bytes[HEADER_BYTES + 4..];
        assert_eq!(attribute(attrs, 3), Some(&b"lo\0"[..]));
        assert_eq!(attribute(attribute(attrs, 5).unwrap(), 1), Some(&7u32.to_ne_bytes()[..]));
        assert_eq!(attribute(attrs, 9), Some(&[8u8][..]));
        assert_eq!(attribute(attrs, 1), None);
    }

    #[test]
    fn malformed_attributes_end_the_list() {
        for bytes in [&[][..], &[1], &[3, 0, 1, 0], &[200, 0, 1, 0, 5], &[0, 0, 0, 0]] {
            assert_eq!(attributes(bytes).count(), 0, "{bytes:?}");
        }
    }

    #[test]
    fn the_loopback_link_is_listed() {
        let mut netlink = Netlink::open(Protocol::Route).unwrap();
        let links = netlink.dump("list links", Message::new(libc::RTM_GETLINK, 0, &[0; 16])).unwrap();
        let names: Vec<_> =
            links.iter().filter_map(|l| attribute(&l.body[16..], libc::IFLA_IFNAME)).collect();
        assert!(names.contains(&&b"lo\0"[..]));
    }

    #[test]
    fn a_refusal_names_operation_and_cause() {
        let mut netlink = Netlink::open(Protocol::Route).unwrap();
        let mut header = [0u8; 16];
        header[4..8].copy_from_slice(&i32::MAX.to_ne_bytes());
        let error = netlink.request("look up link", Message::new(libc::RTM_GETLINK, 0, &header)).unwrap_err();
        assert_eq!(error.errno(), libc::ENODEV);
        assert!(error.to_string().starts_with("look up link: No such device"), "{error}");
    }
}
