//! System calls, by a filter (seccomp(2)).
//!
//! The filter is a list of calls that are refused. A list of those that are allowed would be stronger, but glibc, musl,
//! the allocators and the runtimes of HTTP clients differ in the calls that they make, also between their versions: a
//! program that is killed by its next build guards nothing. What a list of refusals misses is still subject to Landlock.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};

/// Calls that are refused whatever their arguments.
const REFUSED: &[c_long] = &[
    // Programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    // Other processes, and their memory and descriptors.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Mounts, roots and namespaces, and files by other ways than paths.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_mknodat,
    // Interfaces of the kernel with a history of faults, none of which is used here.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_personality,
    // The machine.
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// The number of `kexec_file_load`, which the `libc` crate does not have for musl on AArch64 (Linux,
/// `include/uapi/asm-generic/unistd.h`).
const KEXEC_FILE_LOAD: c_long = if cfg!(target_arch = "x86_64") { 320 } else { 294 };

/// The bit of a call's number in x32, the other calling convention that has the architecture of x86-64.
#[cfg(target_arch = "x86_64")]
const X32: c_long = 0x4000_0000;

/// Calls with numbers of their own in x32 (Linux, `arch/x86/entry/syscalls/syscall_64.tbl`): ioctl, ptrace, kexec_load,
/// process_vm_readv and process_vm_writev, execve, execveat.
#[cfg(target_arch = "x86_64")]
const OF_X32: &[c_long] = &[514, 520, 521, 528, 539, 540, 545];

/// Kinds of sockets that HTTP, engines and the resolver use. Netlink lists the machine's addresses for getaddrinfo(3).
const FAMILIES: &[libc::c_int] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Requests that put text into the input of a terminal, where the user's shell would run it (ioctl_tty(2)).
const TERMINAL: &[u64] = &[0x5412, 0x541C];

/// Refuses calls that reading an image does not need, and new privileges. The error says why nothing is refused.
pub(super) fn restrict(has_network: bool) -> Result<(), String> {
    let failed = |why: String| format!("the filter of system calls could not be set: {why}");
    let programs = filters(has_network).map_err(|error| failed(error.to_string()))?;
    programs.iter().try_for_each(|program| apply_filter(program)).map_err(|error| failed(error.to_string()))
}

fn filters(has_network: bool) -> Result<[BpfProgram; 2], seccompiler::BackendError> {
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    // An empty list of rules refuses the call.
    let sockets = if has_network { vec![other(FAMILIES)?] } else { Vec::new() };
    rules.insert(libc::SYS_socket, sockets);
    let requests = TERMINAL.iter().map(|request| SeccompRule::new(vec![compare(1, SeccompCmpOp::Eq, *request)?]));
    rules.insert(libc::SYS_ioctl, requests.collect::<Result<_, _>>()?);
    // A user namespace opens more of the kernel to an unprivileged process.
    let user_namespace = u64::from(libc::CLONE_NEWUSER.cast_unsigned());
    let in_namespace = compare(0, SeccompCmpOp::MaskedEq(user_namespace), user_namespace)?;
    rules.insert(libc::SYS_clone, vec![SeccompRule::new(vec![in_namespace])?]);
    #[cfg(target_arch = "x86_64")]
    for call in
        REFUSED.iter().chain(&[libc::SYS_socket]).map(|call| call | X32).chain(OF_X32.iter().map(|call| call | X32))
    {
        rules.insert(call, Vec::new());
    }
    // A filter cannot see the flags of clone3, which lie in memory. C libraries use clone where clone3 does not exist.
    let newer = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok([program(rules, libc::EPERM)?, program(newer, libc::ENOSYS)?])
}

/// Matches a first argument that is none of the values.
fn other(values: &[libc::c_int]) -> Result<SeccompRule, seccompiler::BackendError> {
    let unequal = |value: &libc::c_int| compare(0, SeccompCmpOp::Ne, u64::from(value.cast_unsigned()));
    SeccompRule::new(values.iter().map(unequal).collect::<Result<_, _>>()?)
}

/// A condition on the lower half of an argument, which is all that the kernel reads of these.
fn compare(argument: u8, how: SeccompCmpOp, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, value)
}

fn program(
    rules: BTreeMap<c_long, Vec<SeccompRule>>,
    error: libc::c_int,
) -> Result<BpfProgram, seccompiler::BackendError> {
    let refused = SeccompAction::Errno(error.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, refused, std::env::consts::ARCH.try_into()?)?.try_into()
}
