//! From what was probed to what to type: why this machine gives no emulated network, and what would help.

use std::fmt;

/// What was tried when the system refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// unshare(CLONE_NEWUSER).
    UserNamespace,
    /// Writing setgroups, uid_map or gid_map.
    MapIds,
    /// unshare(CLONE_NEWNET).
    NetNamespace,
    /// Making a pair of veth interfaces.
    Veth,
    /// Opening an AF_PACKET socket with its ring.
    PacketSocket,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UserNamespace => "make a user namespace",
            Self::MapIds => "become root inside the user namespace",
            Self::NetNamespace => "make a network namespace",
            Self::Veth => "make a pair of veth interfaces",
            Self::PacketSocket => "open a packet socket",
        })
    }
}

/// Which rule of the system refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Ubuntu's AppArmor restriction of unprivileged user namespaces.
    AppArmor,
    /// Debian's switch kernel.unprivileged_userns_clone is 0.
    UsernsClone,
    /// user.max_user_namespaces or user.max_net_namespaces is 0 or used up.
    Limit,
    /// A container's seccomp filter or a chroot.
    Container,
    /// The kernel was built without what is needed, or its module is not installed.
    Kernel,
    /// The process has more than one thread: an error of the program, not of the system.
    Threads,
    /// Something else; the system's own error says what.
    Other,
}

/// What was found on this machine after a refusal. `None` where the kernel has no such setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What was tried.
    pub step: Step,
    /// The errno of the refusal.
    pub errno: i32,
    /// kernel.apparmor_restrict_unprivileged_userns.
    pub apparmor_restrict: Option<u64>,
    /// kernel.unprivileged_userns_clone.
    pub userns_clone: Option<u64>,
    /// user.max_user_namespaces.
    pub max_user_namespaces: Option<u64>,
    /// Whether the kernel knows user namespaces at all (/proc/self/ns/user).
    pub has_user_namespaces: bool,
    /// Whether a seccomp filter is active or a container left its mark.
    pub in_container: bool,
    /// Threads of this process.
    pub threads: u64,
}

impl Facts {
    /// Looks around on this machine after `step` failed with `errno`.
    pub fn probe(step: Step, errno: i32) -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| -> Option<u64> {
            status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
        };
        let exists = |path: &str| std::path::Path::new(path).exists();
        Self {
            step,
            errno,
            apparmor_restrict: read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
            userns_clone: read_number("/proc/sys/kernel/unprivileged_userns_clone"),
            max_user_namespaces: read_number("/proc/sys/user/max_user_namespaces"),
            has_user_namespaces: exists("/proc/self/ns/user"),
            in_container: field("Seccomp:") == Some(2)
                || exists("/.dockerenv")
                || exists("/run/.containerenv"),
            threads: field("Threads:").unwrap_or(1),
        }
    }

    fn is_forbidden(&self) -> bool {
        self.errno == libc::EPERM || self.errno == libc::EACCES
    }
}

fn read_number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The cause in words and what to type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which rule refused.
    pub cause: Cause,
    /// What happened, one clause.
    pub what: &'static str,
    /// What to do, one sentence.
    pub help: &'static str,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nhelp: {}", self.what, self.help)
    }
}

const APPARMOR: Refusal = Refusal {
    cause: Cause::AppArmor,
    what: "AppArmor restricts user namespaces of ordinary users on this system (Ubuntu 23.10 and later)",
    help: "run `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0` (until the next boot), \
           or run this command with sudo",
};
const USERNS_CLONE: Refusal = Refusal {
    cause: Cause::UsernsClone,
    what: "user namespaces of ordinary users are switched off (kernel.unprivileged_userns_clone is 0)",
    help: "run `sudo sysctl kernel.unprivileged_userns_clone=1` (until the next boot), \
           or run this command with sudo",
};
const LIMIT_ZERO: Refusal = Refusal {
    cause: Cause::Limit,
    what: "user namespaces are switched off (user.max_user_namespaces is 0)",
    help: "run `sudo sysctl user.max_user_namespaces=10000` (until the next boot), or run this command with sudo",
};
const LIMIT_USED: Refusal = Refusal {
    cause: Cause::Limit,
    what: "this user's limit of namespaces is used up",
    help: "end other containers and sandboxes, raise it by `sudo sysctl user.max_user_namespaces=10000 \
           user.max_net_namespaces=10000`, or run this command with sudo",
};
const CONTAINER: Refusal = Refusal {
    cause: Cause::Container,
    what: "the system's settings allow it, so this is most likely a container whose seccomp filter forbids it",
    help: "start the container with `--cap-add SYS_ADMIN --cap-add NET_ADMIN --security-opt seccomp=unconfined` \
           or with `--privileged`, or run this command outside of the container",
};
const NO_USER_NAMESPACES: Refusal = Refusal {
    cause: Cause::Kernel,
    what: "this kernel was built without user namespaces (CONFIG_USER_NS)",
    help: "run this command with sudo",
};
const NO_NET_NAMESPACES: Refusal = Refusal {
    cause: Cause::Kernel,
    what: "this kernel was built without network namespaces (CONFIG_NET_NS)",
    help: "use a kernel of a usual distribution",
};
const NO_VETH: Refusal = Refusal {
    cause: Cause::Kernel,
    what: "the kernel has no veth interfaces (CONFIG_VETH), or their module cannot be loaded from here",
    help: "run `sudo modprobe veth`; if that finds nothing, install the kernel's extra modules \
           (linux-modules-extra on Ubuntu, kernel-modules-extra on Fedora)",
};
const NO_AF_PACKET: Refusal = Refusal {
    cause: Cause::Kernel,
    what: "the kernel has no packet sockets (CONFIG_PACKET), or their module cannot be loaded from here",
    help: "run `sudo modprobe af_packet`; if that finds nothing, use a kernel of a usual distribution",
};
const THREADS: Refusal = Refusal {
    cause: Cause::Threads,
    what: "a process can enter a user namespace only while it has one thread",
    help: "this is an error in the program: please report it",
};
const OTHER: Refusal = Refusal {
    cause: Cause::Other,
    what: "no known restriction of this system explains it",
    help: "run this command with sudo; if it fails too, please report this message",
};

impl Refusal {
    /// The refusal that the facts point to. The order matters: a setting that forbids everything explains more
    /// than the container around it.
    pub fn explain(facts: &Facts) -> Self {
        match facts.step {
            Step::UserNamespace | Step::MapIds => Self::explain_user(facts),
            Step::NetNamespace if facts.errno == libc::EINVAL => NO_NET_NAMESPACES,
            Step::Veth if facts.errno == libc::EOPNOTSUPP => NO_VETH,
            Step::PacketSocket if facts.errno == libc::EAFNOSUPPORT => NO_AF_PACKET,
            _ => Self::explain_privileged(facts),
        }
    }

    fn explain_user(facts: &Facts) -> Self {
        match facts.errno {
            libc::EINVAL if !facts.has_user_namespaces => NO_USER_NAMESPACES,
            libc::EINVAL if facts.threads > 1 => THREADS,
            libc::ENOSPC if facts.max_user_namespaces == Some(0) => LIMIT_ZERO,
            libc::ENOSPC | libc::EUSERS => LIMIT_USED,
            _ if !facts.is_forbidden() => OTHER,
            _ if facts.apparmor_restrict == Some(1) => APPARMOR,
            _ if facts.userns_clone == Some(0) => USERNS_CLONE,
            _ => CONTAINER,
        }
    }

    /// Root over its user namespace, and refused all the same.
    fn explain_privileged(facts: &Facts) -> Self {
        match facts.errno {
            libc::ENOSPC => LIMIT_USED,
            _ if !facts.is_forbidden() => OTHER,
            _ if facts.apparmor_restrict == Some(1) => APPARMOR,
            _ if facts.in_container => CONTAINER,
            _ => OTHER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: Facts = Facts {
        step: Step::UserNamespace,
        errno: libc::EPERM,
        apparmor_restrict: None,
        userns_clone: None,
        max_user_namespaces: Some(1000),
        has_user_namespaces: true,
        in_container: false,
        threads: 1,
    };

    #[track_caller]
    fn check(facts: Facts, cause: Cause, must_say: &str) {
        let refusal = Refusal::explain(&facts);
        assert_eq!(refusal.cause, cause, "{facts:?}");
        assert!(refusal.to_string().contains(must_say), "{refusal}");
    }

    #[test]
    fn ubuntu_is_recognised_at_each_step() {
        let ubuntu = Facts { apparmor_restrict: Some(1), ..ALLOWED };
        let type_this = "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0";
        check(ubuntu, Cause::AppArmor, type_this);
        check(Facts { step: Step::MapIds, ..ubuntu }, Cause::AppArmor, type_this);
        check(Facts { step: Step::MapIds, errno: libc::EACCES, ..ubuntu }, Cause::AppArmor, type_this);
        check(Facts { step: Step::NetNamespace, ..ubuntu }, Cause::AppArmor, type_this);
        check(Facts { step: Step::Veth, ..ubuntu }, Cause::AppArmor, type_this);
    }

    #[test]
    fn an_unrestricted_apparmor_is_not_blamed() {
        check(Facts { apparmor_restrict: Some(0), ..ALLOWED }, Cause::Container, "--cap-add SYS_ADMIN");
    }

    #[test]
    fn settings_that_switch_it_off() {
        check(Facts { userns_clone: Some(0), ..ALLOWED }, Cause::UsernsClone, "unprivileged_userns_clone=1");
        let none = Facts { errno: libc::ENOSPC, max_user_namespaces: Some(0), ..ALLOWED };
        check(none, Cause::Limit, "user.max_user_namespaces is 0");
        check(Facts { errno: libc::ENOSPC, ..ALLOWED }, Cause::Limit, "used up");
        check(Facts { errno: libc::ENOSPC, step: Step::NetNamespace, ..ALLOWED }, Cause::Limit, "max_net");
    }

    #[test]
    fn a_container_is_what_remains_when_the_settings_allow_it() {
        check(ALLOWED, Cause::Container, "--privileged");
        let root_in_container = Facts { step: Step::NetNamespace, in_container: true, ..ALLOWED };
        check(root_in_container, Cause::Container, "--privileged");
    }

    #[test]
    fn a_kernel_without_the_parts() {
        let without = Facts { errno: libc::EINVAL, has_user_namespaces: false, ..ALLOWED };
        check(without, Cause::Kernel, "CONFIG_USER_NS");
        let net = Facts { step: Step::NetNamespace, errno: libc::EINVAL, ..ALLOWED };
        check(net, Cause::Kernel, "CONFIG_NET_NS");
        check(Facts { step: Step::Veth, errno: libc::EOPNOTSUPP, ..ALLOWED }, Cause::Kernel, "modprobe veth");
        let packet = Facts { step: Step::PacketSocket, errno: libc::EAFNOSUPPORT, ..ALLOWED };
        check(packet, Cause::Kernel, "modprobe af_packet");
    }

    #[test]
    fn our_own_error_is_not_blamed_on_the_system() {
        check(Facts { errno: libc::EINVAL, threads: 4, ..ALLOWED }, Cause::Threads, "error in the program");
        check(Facts { errno: libc::ENOMEM, ..ALLOWED }, Cause::Other, "no known restriction");
    }
}
