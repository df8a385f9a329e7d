//! The shell scripts in which Apptainer keeps an image's environment (`/.singularity.d/env/*.sh`), as far as their effect
//! does not depend on a machine. Nothing is executed.

use model::Gap;
use shell::{
    Evaluator, Field, FileKind, ProgramCall, ShellGap, ShellKind, ShellSource, ShellState, ShellValue, StartMark,
    Surroundings,
};

use super::ImageFiles;

/// Commands of one script that are followed.
const STEPS: usize = 20_000;

/// Advice on a variable that only a shell can determine.
const SETTLE: &str = "set the variable at launch, and name it with --env";

/// Variables of a shell that reads the scripts of an image.
#[derive(Debug)]
pub(super) struct ShellVariables {
    shell: ShellState,
}

impl ShellVariables {
    /// Variables that the runtime exports.
    pub(super) fn new(variables: &[(&str, &str)]) -> Self {
        let mut shell = ShellState::new(ShellKind::Posix, "sh");
        for (name, value) in variables {
            shell.export(name, Ok((*value).to_owned()));
        }
        Self { shell }
    }

    /// The exported variables, by name.
    pub(super) fn exported(&self) -> impl Iterator<Item = (String, Result<String, Gap>)> {
        self.shell.exported().map(|(name, variable)| {
            let value = variable.value.clone().map(|value| match value {
                Some(ShellValue::Text(text)) => text,
                Some(ShellValue::List(_)) | None => String::new(),
            });
            (name.to_owned(), value.map_err(shown))
        })
    }

    /// Why any variable may have another value.
    pub(super) fn gap(&self) -> Option<Gap> {
        self.shell.gap.clone().map(shown)
    }

    /// Gives up on all variables.
    pub(super) fn lose(&mut self, gap: Gap) {
        self.shell.doubt_all(&in_shell(gap));
    }

    /// Evaluates a script; `file` is its name for messages.
    pub(super) fn run(&mut self, files: &ImageFiles<'_>, file: &str, text: &str) {
        let mut surroundings = ScriptFiles { files, steps: STEPS };
        let source = ShellSource { name: file.to_owned(), text: text.to_owned() };
        Evaluator::new(&mut surroundings, SETTLE).run(&mut self.shell, &source);
    }
}

/// The files of an image that were read whole. Others, and links, are unknown here.
#[derive(Debug)]
struct ScriptFiles<'a> {
    files: &'a ImageFiles<'a>,
    steps: usize,
}

/// A reason in an image's configuration: it may quote a script, whose secrets [`Gap::new`] conceals.
fn shown(gap: ShellGap) -> Gap {
    Gap { settle: gap.settle, is_transient: gap.is_transient, ..Gap::new(gap.why) }
}

fn in_shell(gap: Gap) -> ShellGap {
    ShellGap { why: gap.why, settle: gap.settle, is_transient: gap.is_transient }
}

fn unknown(path: &str) -> ShellGap {
    ShellGap::new(format!("{path} was not read")).settled_by(SETTLE)
}

impl Surroundings for ScriptFiles<'_> {
    fn spend(&mut self, steps: usize) -> bool {
        self.steps = self.steps.saturating_sub(steps);
        self.steps > 0
    }

    fn text(&mut self, path: &str) -> Option<Result<ShellSource, ShellGap>> {
        let text = self.files.text(path.trim_start_matches('/'));
        let text = text.map_or_else(|| Err(unknown(path)), |text| text.map_err(in_shell));
        Some(text.map(|text| ShellSource { name: path.to_owned(), text }))
    }

    fn kind(&mut self, path: &str) -> Result<Option<FileKind>, ShellGap> {
        Err(unknown(path))
    }

    fn names(&mut self, folder: &str) -> Result<Vec<String>, ShellGap> {
        Err(unknown(folder))
    }

    fn program(&mut self, name: &str, _: &ShellState) -> Result<Option<String>, ShellGap> {
        Err(unknown(name))
    }

    fn resolve(&mut self, path: &str) -> Result<String, ShellGap> {
        Err(unknown(path))
    }

    fn stand_in(&mut self, _: &[Field], _: &ShellState) -> Option<Result<String, ShellGap>> {
        None
    }

    fn is_given(&mut self, _: &str, _: &(std::rc::Rc<str>, usize)) -> bool {
        true
    }

    fn write(&mut self, _: &str, _: &(std::rc::Rc<str>, usize)) {}

    fn run(&mut self, _: &ProgramCall<'_>, _: &ShellState) -> Result<Option<StartMark>, ShellGap> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use layer::scan::{Compression, LayerScan};

    use super::*;

    fn run(text: &str) -> (BTreeMap<String, Result<String, Gap>>, Option<Gap>) {
        let scan = LayerScan {
            compression: Compression::None,
            unpacked: 0,
            diff_id: None,
            entries: Vec::new(),
            found: BTreeMap::new(),
        };
        let mut variables = ShellVariables::new(&[("PATH", "/bin")]);
        variables.run(&ImageFiles { scan: &scan }, "env/90.sh", text);
        (variables.exported().collect(), variables.gap())
    }

    #[test]
    fn values_are_those_of_a_shell() {
        for (text, value) in [
            ("export A=1", Some("1")),
            ("A=1", None),
            ("A=1\nexport A", Some("1")),
            ("A=1; export A B\nA='2 3'", Some("2 3")),
            ("export A=\"x \\\"y\\\" \\$Z\"", Some("x \"y\" $Z")),
            ("export A=\"${A:-\"C.UTF-8\"}\"", Some("C.UTF-8")),
            ("export A=/x:$PATH:${PATH}", Some("/x:/bin:/bin")),
            ("export A=x$NONE", Some("x")),
            ("export A=1 # why\n# export A=2", Some("1")),
            ("export A=1\nunset B \\\n  A", None),
            ("if [ -z \"$A\" ]; then\n  A=\"/libs\"\nelse\n  A=\"$A:/libs\"\nfi\nexport A", Some("/libs")),
            ("A=1\nif [ -z \"$A\" ]; then\n  A=\"/libs\"\nelse\n  A=\"$A:/libs\"\nfi\nexport A", Some("1:/libs")),
            (
                "export A=1\nif test -n \"${APP:-}\"; then\n . /scif/env\n A=2\n if test -d /x; then A=3; fi\nfi",
                Some("1"),
            ),
            ("export A=0\nif [ -n \"$B\" ]; then A=1; elif [ -z \"$B\" ]; then A=2; else A=3; fi", Some("2")),
            ("export A='multi\nline'", Some("multi\nline")),
            ("B=xy; export A=${B#x}", Some("y")),
            ("f() { A=1; }\nf\nexport A", Some("1")),
            ("export A=1\nmodule load cuda", Some("1")),
            ("for x in a b; do\nA=$x\ndone\nexport A", Some("b")),
        ] {
            let (found, gap) = run(text);
            let found = found.get("A").map(|value| value.clone().unwrap());
            assert_eq!((found.as_deref(), gap), (value, None), "{text}");
        }
    }

    #[test]
    fn what_only_a_shell_can_determine_is_unknown() {
        for (text, why) in [
            ("export A=$(uname -m)", "env/90.sh, line 1: only a shell can determine what uname prints"),
            ("export A=`id`", "only a shell can determine what id prints"),
            ("B=$((1 / 0))\nexport A=$B", "line 1: only a shell can determine the value of an expression"),
            ("if [ -d /x ]; then\nexport A=1\nfi", "only a shell can determine which branch is run"),
            ("[ -d /x ] && export A=1", "only a shell can determine whether the next command of a list is run"),
        ] {
            let (found, gap) = run(text);
            let error = found["A"].clone().unwrap_err();
            assert!(error.why.contains(why) && gap.is_none(), "{text}: {error} {gap:?}");
        }
        for text in [
            "source() { . \"$1\"; }; source /opt/env.sh",
            ". /opt/env.sh",
            "eval \"$(x)\"",
            "[ -f /x ] && . /x",
            "if true",
        ] {
            let (_, gap) = run(text);
            assert!(gap.is_some(), "{text}");
        }
        let (_, gap) = run(". /opt/TOKEN=hunter2");
        assert_eq!(gap.unwrap().why, "/opt/TOKEN=<secret> was not read");
    }
}
