//! Programs that start a command as another user.

use model::{Gap, ImagePath};
use shell::{Field, ShellGap, ShellKind, ShellState};

use super::super::arguments::{Words, assignment, known};
use super::super::gap::in_shell;
use super::super::user::ContainerUser;
use super::super::wrapper::Wrapper;
use super::{Outcome, Runner, SETTLE, Start, StartFault, Started};

/// `PATH` of a login without a configuration (shadow, `login.defs`).
const LOGIN_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games";
const LOGIN_PATH_ROOT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Follows a program that changes the user.
pub(super) fn change(
    runner: &mut Runner<'_>,
    table: &Wrapper,
    name: &str,
    start: &Start<'_>,
    state: &ShellState,
    rest: &[Field],
) -> Outcome {
    let mut words = start.options(rest);
    match name {
        "setpriv" => setpriv(runner, table, start, state, &mut words),
        "su" | "runuser" => su(runner, table, start, state, &mut words),
        "sudo" | "doas" => sudo(runner, table, name, start, state, &mut words),
        _ => {
            // chpst names the user by an option; gosu, su-exec and s6-setuidgid before the command.
            let mut user = None;
            while let Some(option) = words.option(table)? {
                if option.name == "-u" {
                    user = known(option.value)?;
                }
            }
            let mut child = state.child(ShellKind::Posix, "");
            if name == "chpst" && user.is_none() {
                return runner.rest(start, &child, words.rest());
            }
            let user = match user {
                Some(user) => user,
                None => words.next().transpose()?.unwrap_or_default().to_owned(),
            };
            as_user(runner, start, state, &user, |runner| {
                if matches!(name, "gosu" | "su-exec") {
                    child.export("HOME", home(runner));
                }
                runner.rest(start, &child, words.rest())
            })
        }
    }
}

/// Runs something as a user. Without a program before that may add users, an unknown one ends the command.
fn as_user(
    runner: &mut Runner<'_>,
    start: &Start<'_>,
    state: &ShellState,
    user: &str,
    run: impl FnOnce(&mut Runner<'_>) -> Outcome,
) -> Outcome {
    let name = user.split(':').next().unwrap_or_default();
    let user = ContainerUser::find(runner.rootfs, user);
    if user.id.is_none() && state.added.is_none() && !state.may_have_changed("/etc/passwd") {
        let called = start.words.first().and_then(|word| word.as_deref().ok()).unwrap_or_default();
        let fault = StartFault::of_user(called, &start.place, name);
        return Ok(Some(runner.mark(Started::Nothing(Box::new(fault)))));
    }
    let added = || Gap::new(format!("{}: a command before may add user {name}", start.place)).settled_by(SETTLE);
    let user = if user.id.is_some() { Ok(user) } else { Err(added()) };
    let before = std::mem::replace(&mut runner.user, user);
    let outcome = run(runner);
    runner.user = before;
    outcome
}

fn home(runner: &Runner<'_>) -> Result<String, ShellGap> {
    runner.user.clone().map(|user| user.home().to_string()).map_err(in_shell)
}

fn setpriv(
    runner: &mut Runner<'_>,
    table: &Wrapper,
    start: &Start<'_>,
    state: &ShellState,
    words: &mut Words<'_>,
) -> Outcome {
    let mut user = None;
    let mut child = state.child(ShellKind::Posix, "");
    let mut resets = false;
    while let Some(option) = words.option(table)? {
        match &*option.name {
            "--reuid" | "--ruid" => user = known(option.value)?,
            "--reset-env" => resets = true,
            _ => {}
        }
    }
    let Some(user) = user else { return runner.rest(start, &child, words.rest()) };
    as_user(runner, start, state, &user, |runner| {
        if resets {
            reset(runner, &mut child);
        }
        runner.rest(start, &child, words.rest())
    })
}

/// The environment of a new login.
fn reset(runner: &Runner<'_>, child: &mut ShellState) {
    child.variables.clear();
    child.gap = None;
    child.export("HOME", home(runner));
    let is_root = runner.user.as_ref().is_ok_and(|user| user.id == Some(0));
    child.export("PATH", Ok(if is_root { LOGIN_PATH_ROOT } else { LOGIN_PATH }.to_owned()));
}

/// `su [OPTIONS] [-] [USER [ARGUMENTS]]`, whose options may follow the user, and `runuser -u USER COMMAND`.
fn su(
    runner: &mut Runner<'_>,
    table: &Wrapper,
    start: &Start<'_>,
    state: &ShellState,
    words: &mut Words<'_>,
) -> Outcome {
    let mut command = None;
    let mut shell = None;
    let mut user = None;
    let mut direct = None;
    let mut is_login = false;
    let mut keeps = false;
    let mut arguments: Vec<Field> = Vec::new();
    while !words.rest().is_empty() {
        if words.peek() == Some("-") {
            words.next();
            is_login = true;
        } else if let Some(option) = words.option(table)? {
            match &*option.name {
                "-u" | "--user" => direct = known(option.value)?,
                "-c" | "--command" | "--session-command" => command = option.value,
                "-s" | "--shell" => shell = known(option.value)?,
                "-l" | "--login" => is_login = true,
                "-m" | "-p" | "--preserve-environment" => keeps = true,
                _ => {}
            }
        } else if let Some(user) = &direct {
            let child = state.child(ShellKind::Posix, "");
            return as_user(runner, start, state, user, |runner| runner.rest(start, &child, words.rest()));
        } else if user.is_none() {
            user = words.next().transpose()?.map(str::to_owned);
        } else {
            arguments.extend(words.rest().iter().cloned());
            break;
        }
    }
    let user = user.unwrap_or_else(|| "root".to_owned());
    let shell = shell.unwrap_or_else(|| login_shell(runner, &user));
    let mut child = state.child(ShellKind::Posix, "");
    as_user(runner, start, state, &user, |runner| {
        if is_login {
            reset(runner, &mut child);
            child.directory = home(runner);
        } else if !keeps {
            child.export("HOME", home(runner));
        }
        let mut words: Vec<Field> = vec![Ok(shell)];
        if is_login {
            words.push(Ok("-l".to_owned()));
        }
        if let Some(command) = command {
            words.push(Ok("-c".to_owned()));
            words.push(command);
        }
        words.extend(arguments);
        runner.rest(start, &child, &words)
    })
}

/// The last field of the user's line in the passwd file.
fn login_shell(runner: &Runner<'_>, user: &str) -> String {
    let passwd = runner.read(&ImagePath::from("etc/passwd")).and_then(Result::ok).unwrap_or_default();
    let mut lines = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found = lines.find(|fields| fields.first() == Some(&user));
    let shell = found.and_then(|fields| fields.get(6).map(|shell| (*shell).to_owned()));
    shell.filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".to_owned())
}

fn sudo(
    runner: &mut Runner<'_>,
    table: &Wrapper,
    name: &str,
    start: &Start<'_>,
    state: &ShellState,
    words: &mut Words<'_>,
) -> Outcome {
    let mut user = "root".to_owned();
    let mut keeps = false;
    let mut kept = String::new();
    let mut child = state.child(ShellKind::Posix, "");
    while let Some(option) = words.option(table)? {
        match &*option.name {
            "-u" | "--user" => user = known(option.value)?.unwrap_or_default(),
            "-E" | "--preserve-env" => match known(option.value)? {
                Some(names) => kept = kept + "," + &names,
                None => keeps = true,
            },
            "-i" | "--login" => return Err(Runner::gap(start, "sudo -i starts a login shell")),
            "-D" | "--chdir" => {
                if let Some(folder) = known(option.value)? {
                    child.enter(&folder);
                }
            }
            _ => {}
        }
    }
    as_user(runner, start, state, &user, |runner| {
        if !keeps {
            child.variables.retain(|name, _| kept.split(',').any(|kept| kept == name));
            child.gap = None;
            child.export("HOME", home(runner));
        }
        if name == "sudo" {
            child.export("PATH", secure_path(runner, state));
        }
        let mut rest = words.rest();
        while let Some((word, after)) = rest.split_first()
            && let Some((name, value)) = assignment(word)
        {
            child.export(name, value);
            rest = after;
        }
        runner.rest(start, &child, rest)
    })
}

/// `PATH` that sudo sets (sudoers(5), `secure_path`), else the one before.
fn secure_path(runner: &Runner<'_>, state: &ShellState) -> Result<String, ShellGap> {
    let Some(sudoers) = runner.read(&ImagePath::from("etc/sudoers")).transpose()? else { return state.text("PATH") };
    let lines = sudoers.lines().map(str::trim).filter(|line| line.starts_with("Defaults"));
    let value = lines.rev().find_map(|line| line.split_once("secure_path")).map(|(_, value)| value);
    match value.and_then(|value| value.trim_start().strip_prefix('=')) {
        Some(value) => Ok(value.trim().trim_matches('"').to_owned()),
        None => state.text("PATH"),
    }
}
