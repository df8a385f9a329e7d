//! Scripts that an image's command may run, or that a shell reads when it starts. Which of them it runs is not known
//! while a layer is scanned, so all that may be are kept whole, within limits: an image has thousands more.

use model::{Entry, ImagePath};

/// Largest script in a folder of programs, such as `/usr/bin`, in bytes. Scripts of installers (pip, conda) are shorter.
const IN_PROGRAMS: u64 = 8 << 10;

/// Largest script elsewhere, in bytes.
const ELSEWHERE: u64 = 64 << 10;

/// Number of components of the path of a script outside folders of programs.
const DEPTH: usize = 4;

/// Folders whose scripts are parts of packages.
const OF_PACKAGES: &[&[u8]] =
    &[b"site-packages", b"dist-packages", b"node_modules", b"pkgs", b"share", b"src", b"doc", b"var", b"proc", b"sys"];

/// Largest file of variables, in bytes.
const OF_VARIABLES: u64 = 8 << 10;

/// Files that shells and sudo read when they start, by their names.
const STARTUP: &[&[u8]] = &[
    b".profile",
    b".bash_profile",
    b".bash_login",
    b".bashrc",
    b"profile",
    b"bash.bashrc",
    b"bashrc",
    b"shinit_v2",
    b"sudoers",
];

/// True for a file that is kept.
pub(super) fn is_kept(entry: &Entry, head: &[u8]) -> bool {
    let path = &entry.path;
    let name = path.file_name();
    let parent = path.parent();
    let folder = parent.file_name();
    if entry.size > ELSEWHERE || path.components().any(|part| OF_PACKAGES.contains(&part)) {
        return false;
    }
    if is_read_at_start(path) {
        return true;
    }
    let is_of_programs = matches!(folder, b"bin" | b"sbin" | b"condabin" | b"shims");
    let is_executed = head.starts_with(b"#!") && entry.mode & 0o111 != 0;
    let is_shallow = path.components().count() <= DEPTH;
    if is_of_programs {
        // A venv's script to be sourced has no interpreter.
        return (is_executed || name == b"activate" || name.ends_with(b".sh"))
            && (entry.size <= IN_PROGRAMS || (is_shallow && name.ends_with(b".sh")));
    }
    is_shallow && (is_executed || head.starts_with(b"#!") || name.ends_with(b".sh") || is_of_variables(entry, head))
}

/// True for a file that `BASH_ENV` or a script may name, which has neither an interpreter nor a common ending: a text
/// whose name says that it sets up an environment.
fn is_of_variables(entry: &Entry, head: &[u8]) -> bool {
    let name = entry.path.file_name();
    let is_named = name.ends_with(b"rc") || name.ends_with(b".bash") || name.ends_with(b"profile");
    let is_named = is_named || name.windows(3).any(|part| part.eq_ignore_ascii_case(b"env"));
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    is_named && entry.size <= OF_VARIABLES && head.iter().all(is_text)
}

fn is_read_at_start(path: &ImagePath) -> bool {
    let parent = path.parent();
    let is_of_home = parent.is_root() || parent.parent().is_root() || parent.parent().file_name() == b"home";
    (is_of_home && STARTUP.contains(&path.file_name()))
        || (parent.ends_with("etc/profile.d") && path.file_name().ends_with(b".sh"))
        || (parent.ends_with("etc/conda/activate.d") && path.file_name().ends_with(b".sh"))
}

#[cfg(test)]
mod tests {
    use model::EntryKind;

    use super::*;

    #[test]
    fn scripts_that_a_command_may_run_are_kept() {
        const SHEBANG: &[u8] = b"#!/bin/sh\n";
        for (path, head, mode, size, kept) in [
            ("entrypoint.sh", SHEBANG, 0o755, 100, true),
            ("entrypoint", SHEBANG, 0o755, 100, true),
            ("app/run", b"\x7fELF", 0o755, 100, false),
            ("app/train.py", b"#!/usr/bin/env python3", 0o755, 60 << 10, true),
            ("app/train.py", b"import torch", 0o755, 100, false),
            ("app/env.sh", b"export A=1", 0o644, 100, true),
            ("app/env.sh", b"export A=1", 0o644, 70 << 10, false),
            ("etc/bash_env", b"export A=1", 0o644, 100, true),
            ("opt/app/.env", b"A=1", 0o644, 100, true),
            ("opt/app/environment", b"A=1", 0o644, 9 << 10, false),
            ("opt/app/envelope.bin", b"\x00\x01", 0o644, 100, false),
            ("opt/nvidia/entrypoint.d/10-banner.sh", b"echo", 0o755, 100, true),
            ("opt/conda/envs/x/bin/torchrun", b"#!/opt/conda/envs/x/bin/python", 0o755, 300, true),
            ("opt/conda/envs/x/bin/large", b"#!/opt/conda/envs/x/bin/python", 0o755, 9 << 10, false),
            ("opt/conda/pkgs/x-1/bin/torchrun", b"#!/opt/conda/bin/python", 0o755, 300, false),
            ("srv/a/b/venv/bin/activate", b"# This file", 0o644, 2000, true),
            ("opt/conda/etc/profile.d/conda.sh", b"export", 0o644, 3000, true),
            ("root/.bashrc", b"# .bashrc", 0o644, 3000, true),
            ("home/user/.profile", b"# .profile", 0o644, 3000, true),
            ("usr/lib/python3/dist-packages/x.py", b"#!/usr/bin/python3", 0o755, 100, false),
            ("usr/share/x/run.sh", SHEBANG, 0o755, 100, false),
            ("a/b/c/d/run.sh", SHEBANG, 0o755, 100, false),
        ] {
            let entry = Entry { path: path.into(), kind: EntryKind::File, mode, owner: None, size };
            assert_eq!(is_kept(&entry, head), kept, "{path}, {size} bytes");
        }
    }
}
