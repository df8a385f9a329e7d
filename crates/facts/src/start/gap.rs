//! Why something is unknown: the reasons of a shell and those of facts.

use model::Gap;
use shell::ShellGap;

/// The reason as facts have it. It may quote a script, whose secrets [`Gap::new`] conceals.
pub(super) fn shown(gap: ShellGap) -> Gap {
    Gap { settle: gap.settle, is_transient: gap.is_transient, ..Gap::new(gap.why) }
}

/// The reason as a shell has it.
pub(super) fn in_shell(gap: Gap) -> ShellGap {
    ShellGap { why: gap.why, settle: gap.settle, is_transient: gap.is_transient }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_shown_without_secrets_and_otherwise_as_it_is() {
        let gap = ShellGap { is_transient: true, ..ShellGap::new("TOKEN=hunter2 is doubtful").settled_by("run it") };
        let expected = Gap::new("TOKEN=<secret> is doubtful").settled_by("run it").of_this_run();
        assert_eq!(shown(gap), expected);
        assert_eq!(shown(in_shell(expected.clone())), expected);
    }
}
