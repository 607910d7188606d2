//! Our own packet rules over nf_tables netlink: which packets go to the queue, and how CE marks are set.
//!
//! ```text
//! table ip accel_shaper_eth0 { owner }                table ip6 likewise
//!   chain queue  postrouting -149   other output interface -> accept
//!                                   destination to bypass  -> accept     (link-local, multicast, on-link)
//!                                   the rest               -> queue N, bypass without a listener
//!   chain mark   postrouting -148   mark == CE_COOKIE      -> ECN = CE, mark = 0
//! ```
//! The table belongs to the netlink socket that made it (owner flag, Linux 5.12): when the process that holds
//! [`Rules`] is gone for whatever reason, the kernel removes table and rules. Earlier kernels get a table without
//! owner, which [`Rules::remove`] and the next [`Rules::install`] delete.
//!
//! CE marks are set by the kernel: the queue's verdict gives the packet a mark, and the second chain turns it into
//! ECN bits. So the packet need not be copied to us, and a GSO super-packet can be marked like any other.
//! Only packets without a mark of their own can carry the cookie; congestion on others is signalled by a drop.
//!
//! The hook is POSTROUTING right after mangle priority: the output interface is known, forwarded packets pass too, and
//! source NAT (priority 100) has not yet hidden the flows behind one address. Nobody's chain at the usual -150 comes
//! between our two, whenever it is loaded, so that no rule of others (`CONNMARK --save-mark`) sees the cookie.

mod expression;

use crate::netlink::{Message, Netlink, NetlinkError, Protocol, attribute, attributes};
use crate::route::Prefix;
use expression::Expressions;
use std::net::IpAddr;

/// The mark with which a verdict asks for CE. Never seen outside our two chains: the second one clears it.
pub const CE_COOKIE: u32 = 0xACCE_1CE0;

const NFTA_TABLE_NAME: u16 = 1;
const NFTA_TABLE_FLAGS: u16 = 2;
const NFT_TABLE_F_OWNER: u32 = 2;
const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_TYPE: u16 = 7;
const NFTA_HOOK_HOOKNUM: u16 = 1;
const NFTA_HOOK_PRIORITY: u16 = 2;
const NFTA_RULE_TABLE: u16 = 1;
const NFTA_RULE_CHAIN: u16 = 2;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_RULE_USERDATA: u16 = 7;

const QUEUE_CHAIN: &str = "queue";
const MARK_CHAIN: &str = "mark";

/// Which packets are queued, and to which queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePlan {
    /// Name of the tables; one per interface and network namespace.
    pub table: String,
    /// Output interface. It need not exist; loopback must not be named.
    pub interface: String,
    /// NFQUEUE number.
    pub queue: u16,
    /// Destinations whose packets pass unqueued.
    pub bypass: Vec<Prefix>,
}

/// Packets that the rules have seen since they were installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCounters {
    /// Sent to a destination to bypass.
    pub bypassed_packets: u64,
    /// Handed to the queue (or passed on while it had no listener).
    pub queued_packets: u64,
}

/// Installed rules. They are gone when this is dropped (with the owner flag, also when the process dies).
#[derive(Debug)]
pub struct Rules {
    netlink: Netlink,
    plan: RulePlan,
    dialect: Dialect,
    families: Vec<Family>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

impl Family {
    const fn number(self) -> u8 {
        match self {
            Self::V4 => libc::NFPROTO_IPV4 as u8,
            Self::V6 => libc::NFPROTO_IPV6 as u8,
        }
    }

    const fn has(self, prefix: Prefix) -> bool {
        matches!((self, prefix.address()), (Self::V4, IpAddr::V4(_)) | (Self::V6, IpAddr::V6(_)))
    }
}

/// What the running kernel understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dialect {
    owner: bool,
    native_queue: bool,
}

/// Best first.
const DIALECTS: [Dialect; 4] = [
    Dialect { owner: true, native_queue: true },
    Dialect { owner: true, native_queue: false },
    Dialect { owner: false, native_queue: true },
    Dialect { owner: false, native_queue: false },
];

impl Rules {
    /// Installs the rules in the caller's network namespace, in the best way that the kernel has. A stale table
    /// of the same name without owner is replaced.
    ///
    /// # Errors
    /// The kernel's refusal: EPERM without CAP_NET_ADMIN, ENOENT when it has no way to queue packets.
    pub fn install(plan: &RulePlan) -> Result<Self, NetlinkError> {
        let mut refusal = None;
        for dialect in DIALECTS {
            match Self::install_as(plan, dialect) {
                Err(error) if lacks_feature(&error) => refusal = Some(error),
                done => return done,
            }
        }
        Err(refusal.expect("the loop ran at least once, and only a refusal goes on"))
    }

    /// One way only. A fresh socket for each: the answers to a refused transaction stay with the old one.
    fn install_as(plan: &RulePlan, dialect: Dialect) -> Result<Self, NetlinkError> {
        let families = if has_ipv6() { vec![Family::V4, Family::V6] } else { vec![Family::V4] };
        let netlink = Netlink::open(Protocol::Netfilter)?;
        let mut rules = Self { netlink, plan: plan.clone(), dialect, families };
        rules.create()?;
        Ok(rules)
    }

    /// As an old kernel does it: without the owner flag, by whichever queue expression there is.
    #[cfg(test)]
    pub(crate) fn install_unowned(plan: &RulePlan) -> Result<Self, NetlinkError> {
        let [native, compat] = [true, false].map(|native_queue| Dialect { owner: false, native_queue });
        Self::install_as(plan, native).or_else(|_| Self::install_as(plan, compat))
    }

    fn create(&mut self) -> Result<(), NetlinkError> {
        let stale: Vec<_> = (self.families.iter().copied())
            .filter(|&family| {
                table_names(&mut self.netlink, family).is_ok_and(|n| n.contains(&self.plan.table))
            })
            .collect();
        let mut messages: Vec<_> = stale.into_iter().map(|family| self.delete_table(family)).collect();
        for family in self.families.clone() {
            messages.push(self.new_table(family));
            messages.push(self.new_chain(family, QUEUE_CHAIN, libc::NF_IP_PRI_MANGLE + 1));
            messages.push(self.new_chain(family, MARK_CHAIN, libc::NF_IP_PRI_MANGLE + 2));
            messages.extend(self.queue_rules(family));
            messages.push(self.mark_rule(family));
        }
        self.netlink.batch("install packet rules", messages)
    }

    /// Replaces the destinations to bypass, as one transaction: no packet meets half a rule set.
    ///
    /// # Errors
    /// The kernel's refusal; the old rules stay.
    pub fn set_bypass(&mut self, bypass: Vec<Prefix>) -> Result<(), NetlinkError> {
        let old = std::mem::replace(&mut self.plan.bypass, bypass);
        let mut messages = Vec::new();
        for family in self.families.clone() {
            messages.push(self.flush_queue_chain(family));
            messages.extend(self.queue_rules(family));
        }
        let result = self.netlink.batch("replace packet rules", messages);
        if result.is_err() {
            self.plan.bypass = old;
        }
        result
    }

    /// The destinations that are bypassed now.
    pub fn bypass(&self) -> &[Prefix] {
        &self.plan.bypass
    }

    /// Whether the kernel removes the rules by itself when this process dies.
    pub const fn are_owned(&self) -> bool {
        self.dialect.owner
    }

    /// Reads the rules' counters, summed over IPv4 and IPv6.
    ///
    /// # Errors
    /// When the kernel refuses the listing, for instance because someone deleted the table.
    pub fn counters(&mut self) -> Result<RuleCounters, NetlinkError> {
        let mut sum = RuleCounters::default();
        for family in self.families.clone() {
            let request = self.rule_message(libc::NFT_MSG_GETRULE, 0, family);
            for reply in self.netlink.dump("list packet rules", request)? {
                let attrs = reply.body.get(4..).unwrap_or(&[]);
                let packets = counted_packets(attrs).unwrap_or(0);
                match attribute(attrs, NFTA_RULE_USERDATA) {
                    Some(tag) if tag == comment("queue") => sum.queued_packets += packets,
                    Some(tag) if tag == comment("bypass") => sum.bypassed_packets += packets,
                    _ => {}
                }
            }
        }
        Ok(sum)
    }

    /// Queues no further packet, but leaves the empty chains in place.
    ///
    /// The kernel drops every held packet of the namespace when a chain is removed from its hook (Linux 6.18 was
    /// seen to), so a clean end is: stop queueing, accept what is held, then [`Rules::remove`].
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn stop_queueing(&mut self) -> Result<(), NetlinkError> {
        let messages = self.families.iter().map(|&family| self.flush_queue_chain(family)).collect();
        self.netlink.batch("stop queueing packets", messages)
    }

    /// Removes the rules now; packets pass unqueued from here on, and those still held are dropped.
    ///
    /// # Errors
    /// The kernel's refusal. With the owner flag the rules are gone even then, since the socket closes.
    pub fn remove(mut self) -> Result<(), NetlinkError> {
        let messages = self.families.iter().map(|&family| self.delete_table(family)).collect();
        self.netlink.batch("remove packet rules", messages)
    }

    fn new_table(&self, family: Family) -> Message {
        let flags = if self.dialect.owner { NFT_TABLE_F_OWNER } else { 0 };
        message(libc::NFT_MSG_NEWTABLE, libc::NLM_F_CREATE | libc::NLM_F_EXCL, family)
            .attr_str(NFTA_TABLE_NAME, &self.plan.table)
            .attr_be32(NFTA_TABLE_FLAGS, flags)
    }

    fn delete_table(&self, family: Family) -> Message {
        message(libc::NFT_MSG_DELTABLE, 0, family).attr_str(NFTA_TABLE_NAME, &self.plan.table)
    }

    fn flush_queue_chain(&self, family: Family) -> Message {
        self.rule_message(libc::NFT_MSG_DELRULE, 0, family).attr_str(NFTA_RULE_CHAIN, QUEUE_CHAIN)
    }

    fn new_chain(&self, family: Family, name: &str, priority: i32) -> Message {
        message(libc::NFT_MSG_NEWCHAIN, libc::NLM_F_CREATE, family)
            .attr_str(NFTA_CHAIN_TABLE, &self.plan.table)
            .attr_str(NFTA_CHAIN_NAME, name)
            .nested(NFTA_CHAIN_HOOK, |m| {
                m.attr_be32(NFTA_HOOK_HOOKNUM, libc::NF_INET_POST_ROUTING as u32)
                    .attr_be32(NFTA_HOOK_PRIORITY, priority.cast_unsigned())
            })
            .attr_str(NFTA_CHAIN_TYPE, "filter")
    }

    fn queue_rules(&self, family: Family) -> Vec<Message> {
        let interface = &self.plan.interface;
        let mut rules =
            vec![self.rule(family, QUEUE_CHAIN, "other", |e| e.output_is_not(interface).accept())];
        for &prefix in self.plan.bypass.iter().filter(|&&prefix| family.has(prefix)) {
            rules.push(
                self.rule(family, QUEUE_CHAIN, "bypass", |e| e.destination_in(prefix).count().accept()),
            );
        }
        let (number, native) = (self.plan.queue, self.dialect.native_queue);
        rules.push(self.rule(family, QUEUE_CHAIN, "queue", |e| {
            if native { e.count().queue_native(number) } else { e.count().queue_xt(number) }
        }));
        rules
    }

    fn mark_rule(&self, family: Family) -> Message {
        self.rule(family, MARK_CHAIN, "mark", |e| {
            let matched = e.mark_is(CE_COOKIE).output_is(&self.plan.interface);
            let marked = match family {
                Family::V4 => matched.set_ce_v4(),
                Family::V6 => matched.set_ce_v6(),
            };
            marked.clear_mark()
        })
    }

    fn rule(
        &self,
        family: Family,
        chain: &str,
        tag: &str,
        expressions: impl FnOnce(Expressions) -> Expressions,
    ) -> Message {
        self.rule_message(libc::NFT_MSG_NEWRULE, libc::NLM_F_CREATE | libc::NLM_F_APPEND, family)
            .attr_str(NFTA_RULE_CHAIN, chain)
            .nested(NFTA_RULE_EXPRESSIONS, |m| expressions(Expressions(m)).0)
            .attr(NFTA_RULE_USERDATA, &comment(tag))
    }

    fn rule_message(&self, kind: i32, flags: i32, family: Family) -> Message {
        message(kind, flags, family).attr_str(NFTA_RULE_TABLE, &self.plan.table)
    }
}

#[cfg(test)]
impl Rules {
    /// Somebody else's rule: counts IPv4 packets with the mark `mark` at mangle priority, as queued packets.
    pub(crate) fn install_foreign_counter(name: &str, mark: u32) -> Result<Self, NetlinkError> {
        let plan =
            RulePlan { table: name.to_owned(), interface: String::new(), queue: 0, bypass: Vec::new() };
        let netlink = Netlink::open(Protocol::Netfilter)?;
        let mut rules = Self { netlink, plan, dialect: DIALECTS[1], families: vec![Family::V4] };
        let messages = vec![
            rules.new_table(Family::V4),
            rules.new_chain(Family::V4, QUEUE_CHAIN, libc::NF_IP_PRI_MANGLE),
            rules.rule(Family::V4, QUEUE_CHAIN, "queue", |e| e.mark_is(mark).count()),
        ];
        rules.netlink.batch("install foreign rules", messages)?;
        Ok(rules)
    }
}

/// The names of the tables in the caller's network namespace, IPv4's before IPv6's.
///
/// # Errors
/// When the kernel has no nf_tables or the caller may not list them.
pub fn list_tables() -> Result<Vec<String>, NetlinkError> {
    let mut netlink = Netlink::open(Protocol::Netfilter)?;
    let mut names = table_names(&mut netlink, Family::V4)?;
    names.extend(table_names(&mut netlink, Family::V6)?);
    Ok(names)
}

fn table_names(netlink: &mut Netlink, family: Family) -> Result<Vec<String>, NetlinkError> {
    let replies = netlink.dump("list tables", message(libc::NFT_MSG_GETTABLE, 0, family))?;
    let name = |body: &[u8]| {
        let text = attribute(body.get(4..)?, NFTA_TABLE_NAME)?;
        Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
    };
    Ok(replies.iter().filter_map(|reply| name(&reply.body)).collect())
}

fn message(kind: i32, flags: i32, family: Family) -> Message {
    let kind = (libc::NFNL_SUBSYS_NFTABLES << 8 | kind) as u16;
    Message::netfilter(kind, flags as u16, family.number(), 0)
}

/// User data in the form that `nft list ruleset` shows as the rule's comment: type 0, length, text with NUL.
fn comment(text: &str) -> Vec<u8> {
    let mut bytes = vec![0, text.len() as u8 + 1];
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
    bytes
}

/// The packets in the rule's counter, `None` for a rule without one.
fn counted_packets(rule: &[u8]) -> Option<u64> {
    const NFTA_EXPR_NAME: u16 = 1;
    const NFTA_EXPR_DATA: u16 = 2;
    const NFTA_COUNTER_PACKETS: u16 = 2;
    let expressions = attribute(rule, NFTA_RULE_EXPRESSIONS)?;
    let (_, counter) = attributes(expressions)
        .find(|(_, expression)| attribute(expression, NFTA_EXPR_NAME) == Some(&b"counter\0"[..]))?;
    let packets = attribute(attribute(counter, NFTA_EXPR_DATA)?, NFTA_COUNTER_PACKETS)?;
    Some(u64::from_be_bytes(packets.try_into().ok()?))
}

/// Whether the refusal says that the kernel lacks an expression or a flag, so that a simpler dialect may work.
fn lacks_feature(error: &NetlinkError) -> bool {
    matches!(error.errno(), libc::ENOENT | libc::EINVAL | libc::EOPNOTSUPP)
}

/// Whether this kernel runs IPv6 at all.
fn has_ipv6() -> bool {
    std::path::Path::new("/proc/thread-self/net/if_inet6").exists()
}
