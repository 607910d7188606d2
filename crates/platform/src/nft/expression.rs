//! The expressions of a rule, built one after the other into a netlink message.
//!
//! Numbers are those of `linux/netfilter/nf_tables.h`; libc has only some of them.

use crate::netlink::Message;
use crate::route::Prefix;
use std::net::IpAddr;

const NFTA_LIST_ELEM: u16 = 1;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_DATA_VALUE: u16 = 1;
const NFTA_DATA_VERDICT: u16 = 2;

const NFTA_META_DREG: u16 = 1;
const NFTA_META_KEY: u16 = 2;
const NFTA_META_SREG: u16 = 3;
const NFTA_CMP_SREG: u16 = 1;
const NFTA_CMP_OP: u16 = 2;
const NFTA_CMP_DATA: u16 = 3;
const NFTA_BITWISE_SREG: u16 = 1;
const NFTA_BITWISE_DREG: u16 = 2;
const NFTA_BITWISE_LEN: u16 = 3;
const NFTA_BITWISE_MASK: u16 = 4;
const NFTA_BITWISE_XOR: u16 = 5;
const NFTA_IMMEDIATE_DREG: u16 = 1;
const NFTA_IMMEDIATE_DATA: u16 = 2;
const NFTA_PAYLOAD_DREG: u16 = 1;
const NFTA_PAYLOAD_BASE: u16 = 2;
const NFTA_PAYLOAD_OFFSET: u16 = 3;
const NFTA_PAYLOAD_LEN: u16 = 4;
const NFTA_PAYLOAD_SREG: u16 = 5;
const NFTA_PAYLOAD_CSUM_TYPE: u16 = 6;
const NFTA_PAYLOAD_CSUM_OFFSET: u16 = 7;

const REG_VERDICT: u32 = 0;
/// A 16-byte register: room for an IPv6 address or an interface name.
const REG_1: u32 = 1;

/// The list of expressions of one rule. Each method appends one condition or statement.
pub(super) struct Expressions(pub(super) Message);

impl Expressions {
    /// Goes on only when the packet leaves through another interface than `name`.
    pub(super) fn output_is_not(self, name: &str) -> Self {
        self.output_compares(libc::NFT_CMP_NEQ, name)
    }

    /// Goes on only when the packet leaves through the interface `name`.
    pub(super) fn output_is(self, name: &str) -> Self {
        self.output_compares(libc::NFT_CMP_EQ, name)
    }

    fn output_compares(self, operator: i32, name: &str) -> Self {
        let mut padded = [0u8; libc::IFNAMSIZ];
        let len = name.len().min(libc::IFNAMSIZ - 1);
        padded[..len].copy_from_slice(&name.as_bytes()[..len]);
        self.load_meta(libc::NFT_META_OIFNAME).compare(operator, &padded)
    }

    /// Goes on only when the packet's mark is `mark`.
    pub(super) fn mark_is(self, mark: u32) -> Self {
        self.load_meta(libc::NFT_META_MARK).compare(libc::NFT_CMP_EQ, &mark.to_ne_bytes())
    }

    /// Goes on only when the destination address is within `prefix`.
    pub(super) fn destination_in(self, prefix: Prefix) -> Self {
        let (offset, address, mask) = match (prefix.address(), prefix.mask()) {
            (IpAddr::V4(a), IpAddr::V4(m)) => (16, a.octets().to_vec(), m.octets().to_vec()),
            (IpAddr::V6(a), IpAddr::V6(m)) => (24, a.octets().to_vec(), m.octets().to_vec()),
            _ => unreachable!("a prefix's mask has its address's family"),
        };
        let zero = vec![0; mask.len()];
        self.load_network_header(offset, mask.len() as u32)
            .mask_and_xor(&mask, &zero)
            .compare(libc::NFT_CMP_EQ, &address)
    }

    /// Sets the packet's ECN field to CE (RFC 3168 section 5) and keeps the IPv4 header checksum right.
    pub(super) fn set_ce_v4(self) -> Self {
        self.load_network_header(0, 2).mask_and_xor(&[0xff, 0xfc], &[0x00, 0x03]).store_first_two_bytes(true)
    }

    /// Sets the ECN field to CE in the IPv6 traffic class, bits 10 and 11 of the header.
    pub(super) fn set_ce_v6(self) -> Self {
        self.load_network_header(0, 2).mask_and_xor(&[0xff, 0xcf], &[0x00, 0x30]).store_first_two_bytes(false)
    }

    /// Sets the packet's mark to zero.
    pub(super) fn clear_mark(self) -> Self {
        self.expression("immediate", |m| {
            let m = m.attr_be32(NFTA_IMMEDIATE_DREG, REG_1);
            m.nested(NFTA_IMMEDIATE_DATA, |m| m.attr(NFTA_DATA_VALUE, &0u32.to_ne_bytes()))
        })
        .expression("meta", |m| {
            m.attr_be32(NFTA_META_KEY, libc::NFT_META_MARK as u32).attr_be32(NFTA_META_SREG, REG_1)
        })
    }

    /// Counts packets and bytes.
    pub(super) fn count(self) -> Self {
        self.expression("counter", |m| m)
    }

    /// Lets the packet go on to the hook's next chain.
    pub(super) fn accept(self) -> Self {
        const NFTA_VERDICT_CODE: u16 = 1;
        self.expression("immediate", |m| {
            m.attr_be32(NFTA_IMMEDIATE_DREG, REG_VERDICT).nested(NFTA_IMMEDIATE_DATA, |m| {
                m.nested(NFTA_DATA_VERDICT, |m| m.attr_be32(NFTA_VERDICT_CODE, libc::NF_ACCEPT as u32))
            })
        })
    }

    /// Hands the packet to queue `number`; without a listener it goes on as if accepted.
    pub(super) fn queue_native(self, number: u16) -> Self {
        const NFTA_QUEUE_NUM: u16 = 1;
        const NFTA_QUEUE_TOTAL: u16 = 2;
        const NFTA_QUEUE_FLAGS: u16 = 3;
        const NFT_QUEUE_FLAG_BYPASS: u16 = 1;
        self.expression("queue", |m| {
            m.attr(NFTA_QUEUE_NUM, &number.to_be_bytes())
                .attr(NFTA_QUEUE_TOTAL, &1u16.to_be_bytes())
                .attr(NFTA_QUEUE_FLAGS, &NFT_QUEUE_FLAG_BYPASS.to_be_bytes())
        })
    }

    /// The same through the xt target NFQUEUE, revision 3 (`struct xt_NFQ_info_v3`: number, total, flags as
    /// 16-bit numbers in host order), for kernels without the native expression.
    pub(super) fn queue_xt(self, number: u16) -> Self {
        const NFTA_TARGET_NAME: u16 = 1;
        const NFTA_TARGET_REV: u16 = 2;
        const NFTA_TARGET_INFO: u16 = 3;
        const NFQ_FLAG_BYPASS: u16 = 1;
        let mut info = [0u8; 8]; // XT_ALIGN rounds the six bytes up to eight
        info[0..2].copy_from_slice(&number.to_ne_bytes());
        info[2..4].copy_from_slice(&1u16.to_ne_bytes());
        info[4..6].copy_from_slice(&NFQ_FLAG_BYPASS.to_ne_bytes());
        self.expression("target", |m| {
            m.attr_str(NFTA_TARGET_NAME, "NFQUEUE")
                .attr_be32(NFTA_TARGET_REV, 3)
                .attr(NFTA_TARGET_INFO, &info)
        })
    }

    fn load_meta(self, key: i32) -> Self {
        self.expression("meta", |m| m.attr_be32(NFTA_META_KEY, key as u32).attr_be32(NFTA_META_DREG, REG_1))
    }

    fn load_network_header(self, offset: u32, len: u32) -> Self {
        self.expression("payload", |m| {
            m.attr_be32(NFTA_PAYLOAD_DREG, REG_1)
                .attr_be32(NFTA_PAYLOAD_BASE, libc::NFT_PAYLOAD_NETWORK_HEADER as u32)
                .attr_be32(NFTA_PAYLOAD_OFFSET, offset)
                .attr_be32(NFTA_PAYLOAD_LEN, len)
        })
    }

    fn store_first_two_bytes(self, has_checksum: bool) -> Self {
        const IPV4_CHECKSUM_OFFSET: u32 = 10;
        let kind = if has_checksum { libc::NFT_PAYLOAD_CSUM_INET } else { libc::NFT_PAYLOAD_CSUM_NONE };
        self.expression("payload", |m| {
            m.attr_be32(NFTA_PAYLOAD_SREG, REG_1)
                .attr_be32(NFTA_PAYLOAD_BASE, libc::NFT_PAYLOAD_NETWORK_HEADER as u32)
                .attr_be32(NFTA_PAYLOAD_OFFSET, 0)
                .attr_be32(NFTA_PAYLOAD_LEN, 2)
                .attr_be32(NFTA_PAYLOAD_CSUM_TYPE, kind as u32)
                .attr_be32(NFTA_PAYLOAD_CSUM_OFFSET, IPV4_CHECKSUM_OFFSET)
        })
    }

    fn mask_and_xor(self, mask: &[u8], xor: &[u8]) -> Self {
        self.expression("bitwise", |m| {
            m.attr_be32(NFTA_BITWISE_SREG, REG_1)
                .attr_be32(NFTA_BITWISE_DREG, REG_1)
                .attr_be32(NFTA_BITWISE_LEN, mask.len() as u32)
                .nested(NFTA_BITWISE_MASK, |m| m.attr(NFTA_DATA_VALUE, mask))
                .nested(NFTA_BITWISE_XOR, |m| m.attr(NFTA_DATA_VALUE, xor))
        })
    }

    fn compare(self, operator: i32, value: &[u8]) -> Self {
        self.expression("cmp", |m| {
            m.attr_be32(NFTA_CMP_SREG, REG_1)
                .attr_be32(NFTA_CMP_OP, operator as u32)
                .nested(NFTA_CMP_DATA, |m| m.attr(NFTA_DATA_VALUE, value))
        })
    }

    fn expression(self, name: &str, data: impl FnOnce(Message) -> Message) -> Self {
        Self(self.0.nested(NFTA_LIST_ELEM, |m| m.attr_str(NFTA_EXPR_NAME, name).nested(NFTA_EXPR_DATA, data)))
    }
}
