//! Parts of help texts. `-h` fits a screen: it shows the most used options and examples. `--help` shows everything.

use clap::Arg;

use image::reference;

/// Exit statuses in one line, for `-h`.
pub(super) const EXIT_SUMMARY: &str = "Exit status: 0 pass, 1 a rule failed, 2 error, 3 incomplete";

/// Exit statuses of commands that judge images, in the words of README.md and docs/exit-status.md.
pub(super) const EXIT: &str = "\
Exit status:
  0  PASS: no rule found a problem and each one has an answer: the image is built to use NCCL and RDMA, on the hosts \
that you described
  0  PASS with …: no rule of severity error failed or lacks an answer; the line counts the warnings, the unknown rules \
and what else is left
  1  FAIL: a rule of severity error failed
  3  INCOMPLETE: no rule of severity error failed, but one is unknown: it could not be answered
  2  error: no verdict: wrong usage, or an input could not be read";

/// Those of `diff`, in the same words.
pub(super) const DIFF_EXIT: &str = "\
Exit status:
  0  NOT WORSE: no rule of severity error is newly failing or newly unknown
  1  WORSE: a rule of severity error is newly failing: it did not fail for the first image, or not in these places
  3  INCOMPLETE: no rule of severity error is newly failing, but one is newly unknown
  2  error: no verdict: wrong usage, or an input could not be read";

/// Syntax of `--host`.
pub(super) const HOSTS: &str = "\
A HOST is driver=VERSION,gpu=MODEL[xCOUNT] (h100x8, or sm_90x8 by architecture), with these optional keys:
  cuda=VERSION  fabric=nvswitch|pcie  rdma=mlx5|efa|none  kernel=VERSION  name=TEXT";

/// The forms of an image reference.
pub(super) fn images() -> String {
    let forms = reference::forms();
    let column = 2 + forms.iter().map(|(form, _)| form.len()).max().unwrap_or_default();
    let lines = forms.iter().map(|(form, description)| format!("  {form:column$}{description}"));
    format!("An IMAGE is one of:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// Joins sections with blank lines.
pub(super) fn sections(texts: &[&str]) -> String {
    texts.join("\n\n")
}

/// Returns a function for `Command::mut_args` that leaves only these long options in `-h`.
pub(super) fn short_help(shown: &'static [&'static str]) -> impl FnMut(Arg) -> Arg {
    move |arg| {
        let is_hidden = arg.get_long().is_some_and(|long| !shown.contains(&long));
        arg.hide_short_help(is_hidden)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory as _};

    use super::super::Arguments;

    /// Size of a terminal that is not maximized.
    const COLUMNS: usize = 80;
    const LINES: usize = 40;

    /// Every command with its path, the program itself first.
    fn commands() -> Vec<(String, Command)> {
        fn gather(path: &str, command: &Command, all: &mut Vec<(String, Command)>) {
            all.push((path.to_owned(), command.clone()));
            for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
                gather(&format!("{path} {}", inner.get_name()), inner, all);
            }
        }
        let mut root = Arguments::command().term_width(COLUMNS);
        root.build();
        let mut all = Vec::new();
        gather("ncclcheck", &root, &mut all);
        all
    }

    fn long_options(command: &Command, in_short_help: bool) -> Vec<&str> {
        let is_hidden = |arg: &&clap::Arg| arg.is_hide_set() || (in_short_help && arg.is_hide_short_help_set());
        let shown = command.get_arguments().filter(|arg| !is_hidden(arg));
        let names: std::collections::BTreeSet<_> = shown.filter_map(clap::Arg::get_long).collect();
        names.into_iter().filter(|name| *name != "help" && *name != "version").collect()
    }

    #[test]
    fn short_help_fits_a_screen() {
        let commands = commands();
        assert!(commands.len() > 20, "{} commands", commands.len());
        for (path, mut command) in commands {
            let text = command.render_help().to_string();
            let lines = text.lines().count();
            assert!(lines <= LINES, "{path} -h: {lines} lines\n{text}");
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or_default();
            assert!(widest <= COLUMNS, "{path} -h: {widest} columns\n{text}");
        }
    }

    #[test]
    fn long_help_has_every_option() {
        for (path, mut command) in commands() {
            let text = command.render_long_help().to_string();
            for name in long_options(&command, false) {
                assert!(text.contains(&format!("--{name}")), "{path} --help lacks --{name}");
            }
        }
    }

    /// A misspelt name in a list of shown options would hide the option.
    #[test]
    fn options_in_short_help() {
        let commands = commands();
        let cut = commands.iter().filter(|(_, command)| long_options(command, true) != long_options(command, false));
        let lines: Vec<_> =
            cut.map(|(path, command)| format!("{path}: {}", long_options(command, true).join(" "))).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        ncclcheck check: config env fail-on fix format host platform profile verbose
        ncclcheck inspect: caller env explain files format jobs platform program verbose
        ncclcheck probe: dry-run format gpus in-place ipc quick record shm-size what-if
        ncclcheck preflight: dry-run expect fail-on format gpus in-place ipc profile quick shm-size
        ncclcheck cluster: format from launch nodes record
        ncclcheck diff: config env format host platform profile verbose
        ncclcheck audit plan: list newest pods repository store tags
        ncclcheck audit run: cache deadline jobs run shard shards store workers
        ncclcheck log: config format profile verbose
        ncclcheck cache export: authfile cert-dir jobs platform tls-verify
        ");
    }
}
