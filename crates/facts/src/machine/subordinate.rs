//! Subordinate user and group IDs (subuid(5)), by which rootless engines give the files of a container their owners.

use model::Fact;

use super::HostTree;

const FILES: [&str; 2] = ["/etc/subuid", "/etc/subgid"];

/// The files that give this user no IDs; absent for root, whose engines need none.
pub(super) fn files_without_user(tree: &HostTree) -> Fact<Vec<String>> {
    unprivileged_user(tree).and_then(|id, _| {
        if let Some(source) = other_source(tree) {
            return Fact::unknown(format!("/etc/nsswitch.conf takes subordinate IDs from '{source}'"));
        }
        let mut files = Vec::new();
        for file in FILES {
            match tree.text(file).and_then(|text, _| names_user(file, &text, id, tree)) {
                Fact::Seen { value: true, .. } => {}
                Fact::Seen { value: false, .. } | Fact::Absent => files.push(file.to_owned()),
                Fact::Unknown(gap) => return Fact::Unknown(gap),
            }
        }
        Fact::known(files)
    })
}

/// The effective user ID of this process; absent for root.
pub(super) fn unprivileged_user(tree: &HostTree) -> Fact<u32> {
    tree.text("/proc/self/status").and_then(|status, _| {
        // The second number of the line `Uid:` (proc_pid_status(5)).
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        match line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()) {
            None => Fact::unknown("/proc/self/status has no user ID"),
            Some(0) => Fact::Absent,
            Some(id) => Fact::known(id),
        }
    })
}

/// The service that has the IDs in place of the files (nsswitch.conf(5)).
fn other_source(tree: &HostTree) -> Option<String> {
    let text = tree.text("/etc/nsswitch.conf").value()?.clone();
    let sources = text.lines().find_map(|line| line.trim().strip_prefix("subid:"))?.trim();
    (sources != "files").then(|| sources.to_owned())
}

/// Returns true if a line `USER:FIRST:COUNT` is of this user, by name or ID.
fn names_user(file: &str, text: &str, id: u32, tree: &HostTree) -> Fact<bool> {
    let users: Vec<_> = text.lines().filter_map(|line| Some(line.trim().split_once(':')?.0)).collect();
    if users.is_empty() || users.contains(&&*id.to_string()) {
        return Fact::known(!users.is_empty());
    }
    match tree.text("/etc/passwd").value().and_then(|accounts| name(accounts, id)) {
        Some(name) => Fact::known(users.contains(&name)),
        None => Fact::unknown(format!("{file} names users, and /etc/passwd has no name for user ID {id}")),
    }
}

/// The name of a user: the first field of the line whose third is the ID (passwd(5)).
fn name(accounts: &str, id: u32) -> Option<&str> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then_some(name)
    })
}
