//! What the evaluator knows of a script is what dash and bash compute.

use std::path::Path;
use std::process::Command;

use super::*;
use crate::model::Gap;

/// No files and no programs.
struct Nothing(usize);

fn unknown(what: &str) -> Gap {
    Gap::new(format!("{what} is unknown"))
}

impl Surroundings for Nothing {
    fn step(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }

    fn text(&mut self, path: &str) -> Option<Result<ShellSource, Gap>> {
        Some(Err(unknown(path)))
    }

    fn kind(&mut self, path: &str) -> Result<Option<FileKind>, Gap> {
        match path {
            "/" => Ok(Some(FileKind::Directory)),
            _ if path.starts_with("/none") => Ok(None),
            _ => Err(unknown(path)),
        }
    }

    fn names(&mut self, folder: &str) -> Result<Vec<String>, Gap> {
        Err(unknown(folder))
    }

    fn program(&mut self, name: &str, _: &ShellState) -> Result<Option<String>, Gap> {
        Err(unknown(name))
    }

    fn resolve(&mut self, path: &str) -> Result<String, Gap> {
        Err(unknown(path))
    }

    fn stand_in(&mut self, _: &[Field], _: &ShellState) -> Option<Result<String, Gap>> {
        None
    }

    fn run(&mut self, _: &ProgramCall<'_>, _: &ShellState) -> Result<Option<StartMark>, Gap> {
        Ok(None)
    }
}

fn evaluate(kind: ShellKind, text: &str) -> ShellState {
    let mut state = ShellState::new(kind, "sh");
    state.export("PATH", Ok("/usr/bin:/bin".to_owned()));
    state.arguments = Ok(vec![Ok("one".to_owned()), Ok("two words".to_owned())]);
    let mut nothing = Nothing(20_000);
    let source = ShellSource { name: "script".to_owned(), text: text.to_owned() };
    Evaluator::new(&mut nothing, "run it").run(&mut state, &source);
    state
}

/// The value of a variable, `None` if it is not set, or why it is unknown.
fn value(state: &ShellState, name: &str) -> Result<Option<String>, Gap> {
    match state.variable(name) {
        Ok(Some(ShellValue::Text(text))) => Ok(Some(text.clone())),
        Ok(Some(ShellValue::List(list))) => Ok(list.first().cloned()),
        Ok(None) => Ok(None),
        Err(gap) => Err(gap.clone()),
    }
}

#[test]
fn values_are_known() {
    for (text, expected) in [
        ("A=${X:-d} B=${PATH:+$PATH:}/x", &[("A", "d"), ("B", "/usr/bin:/bin:/x")][..]),
        (
            "A=a.tar.gz; B=${A%.*}; C=${A%%.*}; D=${A#*.}; E=${A##*.}",
            &[("B", "a.tar"), ("C", "a"), ("D", "tar.gz"), ("E", "gz")],
        ),
        ("f() { local A=1; B=$A$1; return; B=no; }; A=0; f x", &[("A", "0"), ("B", "1x")]),
        ("case $1 in o*) A=yes ;; *) A=no ;; esac", &[("A", "yes")]),
        ("while [ $# -gt 0 ]; do A=$A/$1; shift; done", &[("A", "/one/two words")]),
        ("for x in \"$@\"; do A=$A-$x; done", &[("A", "-one-two words")]),
        ("for x in $*; do A=$A-$x; done", &[("A", "-one-two-words")]),
        ("set -- a b; shift; A=$1$#", &[("A", "b1")]),
        ("A=$(dirname /opt/x/run.sh) B=$(basename \"$A\")", &[("A", "/opt/x"), ("B", "x")]),
        ("A=$(cd / && pwd)", &[("A", "/")]),
        ("eval \"A=1; B=\\$A\"", &[("A", "1"), ("B", "1")]),
        ("A=1; (A=2); { B=3; }; A=4 | cat", &[("A", "1"), ("B", "3")]),
        ("[ -f /none ] || A=1; [ -d / ] && B=1", &[("A", "1"), ("B", "1")]),
        ("if $(x); then A=1; else A=1; fi; B=2", &[("A", "1"), ("B", "2")]),
        ("A=1; x || exit 1; B=2", &[("A", "1"), ("B", "2")]),
        ("set -e; A=1; false; A=2", &[("A", "1")]),
        ("A=1; exit; A=2", &[("A", "1")]),
        ("A=\"a \\\nb\"; B=`echo \\`echo x\\``", &[("A", "a b"), ("B", "x")]),
        ("f() { [ -n \"$(x)\" ] && return 1; A=1; }; A=1; f; B=2", &[("A", "1"), ("B", "2")]),
    ] {
        let state = evaluate(ShellKind::Posix, text);
        for (name, expected) in expected {
            assert_eq!(value(&state, name), Ok(Some((*expected).to_owned())), "{text}: {name}");
        }
    }
    let state = evaluate(
        ShellKind::Bash,
        "L=(a 'b c' d); A=${#L[@]}; B=${L[1]}; for x in \"${L[@]}\"; do C=$C/$x; done; [[ $B == b* && -z $NONE ]] && D=1; E+=x; E+=y",
    );
    for (name, expected) in [("A", "3"), ("B", "b c"), ("C", "/a/b c/d"), ("D", "1"), ("E", "xy")] {
        assert_eq!(value(&state, name), Ok(Some(expected.to_owned())), "{name}");
    }
}

#[test]
fn what_depends_on_a_machine_is_unknown() {
    for text in [
        "A=$(date)",
        "if [ -f /etc/x ]; then A=1; fi",
        "x && A=1",
        "for i in $(x); do A=$i; done",
        "while read A; do :; done",
        "case $(x) in a) A=1 ;; esac",
        ". /opt/env.sh",
        "eval \"$(x)\"",
        "B=$(x); A=${B:-1}",
        "f() { if x; then return; fi; A=1; }; f",
        "for i in a b; do if x; then break; fi; A=$i; done",
        "A=$((1 + 1))",
        "export $(x)",
        "A=[a-z]; A=${A#[[:alpha:]]}",
        "if true; then",
    ] {
        let state = evaluate(ShellKind::Posix, text);
        assert!(value(&state, "A").is_err(), "{text}: {:?}", value(&state, "A"));
    }
}

#[test]
fn scripts_of_any_size_end() {
    let deep = format!("{}A=1{}", "if true; then ".repeat(500), "; fi".repeat(500));
    let twice = "A=x\n".to_owned() + &"A=$A$A\n".repeat(64);
    let recursive = "f() { f; f; }\nf\nA=1\n".to_owned();
    let endless = "while :; do A=$A.; done\n".to_owned();
    let nested = format!("A={}x{}", "${B:-".repeat(300), "}".repeat(300));
    for text in [deep, twice, recursive, endless, nested, "`".repeat(1000), "$(".repeat(5000), "((".repeat(3000)] {
        let state = evaluate(ShellKind::Bash, &text);
        let _ = value(&state, "A");
    }
}

/// A generator of scripts (Knuth's linear congruential one).
struct Generator(u64);

impl Generator {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn name(&mut self) -> &'static str {
        self.pick(&["A", "B", "C", "D"])
    }

    fn atom(&mut self, depth: usize) -> String {
        let name = self.name();
        let word = if depth == 0 { "w".to_owned() } else { self.word(depth - 1) };
        match self.below(17) {
            0 => format!("${name}"),
            1 => format!("${{{name}}}"),
            2 => format!("${{{name}:-{word}}}"),
            3 => format!("${{{name}-{word}}}"),
            4 => format!("${{{name}:+{word}}}"),
            5 => format!("\"${name}\""),
            6 => format!("\"x ${{{name}:-{}}}\"", self.pick(&["y", "y z", "$B"])),
            7 => format!(
                "${{{name}{}{}}}",
                self.pick(&["%", "%%", "#", "##"]),
                self.pick(&["b*", "*b", "/*", "*:", "a", "?"])
            ),
            8 => "'q $A'".to_owned(),
            9 => "\\$".to_owned(),
            10 => format!(
                "$({})",
                self.pick(&["echo a b", "printf %s \"$A\"", "pwd", "echo z | tr z y", "dirname /a/b", "cd / && pwd"])
            ),
            11 => "$#".to_owned(),
            12 => self.pick(&["$1", "\"$2\"", "$3", "\"$*\"", "${1:-x}"]).to_owned(),
            13 => format!("${{#{name}}}"),
            _ => self.pick(&["a", "b", "a:b", "/x/y", "ab.c", "7", "-n"]).to_owned(),
        }
    }

    fn word(&mut self, depth: usize) -> String {
        (0..=self.below(2)).map(|_| self.atom(depth)).collect()
    }

    fn condition(&mut self) -> String {
        // bash 5.2 matches no pattern with the word `${A-""}x` of `case`, so that word is a simple one.
        let (one, two) = (self.pick(&["a", "$A", "\"$B\"", "${C:-b}"]).to_owned(), self.word(1));
        match self.below(9) {
            0 => format!("[ -z \"{}\" ]", ["$A", "$B", "${C:-}", ""][self.below(4)]),
            1 => format!("[ -n \"${}\" ]", self.name()),
            2 => format!("[ \"${}\" = \"${}\" ]", self.name(), self.name()),
            3 => format!("[ \"x{}\" != x{} ]", self.pick(&["$A", "$B", "b"]), self.pick(&["a", "b"])),
            4 => format!("[ $# -{} {} ]", self.pick(&["gt", "eq", "le"]), self.below(4)),
            5 => format!("test -d {}", self.pick(&["/", "/none", "/none/x"])),
            6 => format!("! [ {} = {} ]", self.pick(&["a", "b"]), self.pick(&["a", "b"])),
            7 => format!("case {one}x in {}) true ;; *) false ;; esac", self.pick(&["a*", "*b*", "?x", "[!a]*"])),
            _ => format!("echo {two} | grep -q a"),
        }
    }

    fn statement(&mut self, depth: usize) -> String {
        let (name, word) = (self.name(), self.word(1));
        if depth == 0 {
            return format!("{name}={word}");
        }
        let (one, two) = (self.statement(depth - 1), self.statement(depth - 1));
        match self.below(20) {
            0 => format!("if {}; then {one}; else {two}; fi", self.condition()),
            1 => format!("if {}; then {one}; elif {}; then {two}; fi", self.condition(), self.condition()),
            2 => format!("{} && {name}={word}", self.condition()),
            3 => format!("{} || {{ {one}; {two}; }}", self.condition()),
            4 => format!("for {name} in {word} {}; do {one}; done", self.pick(&["a b", "$A", "\"$@\""])),
            5 => format!("while [ $# -gt 0 ]; do {one}; shift; done"),
            6 => format!("set -- {word} \"$@\""),
            7 => format!("export {name}"),
            8 => format!("unset {name}"),
            9 => format!(
                "f() {{ {one}; {}; {two}; }}; f {}",
                self.pick(&["return", "true", "local A; A=l", "[ $# = 1 ] && return"]),
                self.pick(&["x", "x y", ""])
            ),
            10 => format!("( {one}; {two} )"),
            11 => format!("case ${name} in a|b) {one} ;; *x*) {two} ;; *) D=$D. ;; esac"),
            12 => format!("eval '{name}=e{}'", self.pick(&["", "$A", "\"$B\""])),
            13 => format!("{name}=${{{name}:+${name}:}}{word}"),
            14 => format!(
                "for i in 1 2 3; do {}; {one}; done",
                self.pick(&["[ $i = 2 ] && continue", "[ \"$A\" = a ] && break", "C=$C$i"])
            ),
            15 => format!("{name}=$({one}; echo \"${name}\")"),
            16 => "cd / && B=$PWD".to_owned(),
            _ => format!("{name}={word}"),
        }
    }

    fn script(&mut self) -> String {
        (0..6).map(|_| self.statement(2) + "\n").collect()
    }
}

/// The values of `A` to `D` and the arguments after a script, as a shell computes them.
#[expect(clippy::disallowed_methods, reason = "a test compares with the shells of this machine")]
fn computed(shell: &str, script: &str) -> Vec<String> {
    let shown = "for _v in A B C D; do eval \"if [ -n \\\"\\${$_v+x}\\\" ]; then printf 'set:%s\\0' \\\"\\$$_v\\\"; else printf 'unset\\0'; fi\"; done\nprintf '%s\\0' \"$#\" \"$@\"\n";
    let whole = format!("{{\n{script}\n}} 2>/dev/null >/dev/null\n{shown}");
    // Some generated loops do not end.
    let mut command = Command::new("timeout");
    command
        .args(["0.5", shell, "-c", &whole, "sh", "one", "two words"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/");
    let output = command.output().unwrap();
    String::from_utf8_lossy(&output.stdout).split('\0').map(str::to_owned).collect()
}

#[test]
fn known_values_are_those_of_real_shells() {
    let (mut known, mut all) = (0, 0);
    for (shell, kind) in [("/bin/dash", ShellKind::Posix), ("/bin/bash", ShellKind::Bash)] {
        if !Path::new(shell).exists() {
            continue;
        }
        for seed in (0..500_usize).skip(usize::from(kind == ShellKind::Bash)).step_by(2) {
            let script = Generator(u64::try_from(seed).unwrap() * 7919 + 1).script();
            let state = evaluate(kind, &script);
            let real = computed(shell, &script);
            if real.len() < 5 {
                // The shell refuses the script.
                continue;
            }
            for (name, real) in ["A", "B", "C", "D"].into_iter().zip(&real) {
                all += 1;
                let Ok(value) = value(&state, name) else { continue };
                known += 1;
                let value = value.map_or("unset".to_owned(), |value| format!("set:{value}"));
                assert_eq!(value, *real, "{shell}, seed {seed}: {name} after\n{script}");
            }
            if let Ok(arguments) = &state.arguments {
                let words: Vec<_> = arguments.iter().map(|field| field.clone().ok()).collect();
                assert_eq!(words.len().to_string(), real[4], "{shell}, seed {seed}: $# after\n{script}");
                for (word, real) in words.iter().zip(&real[5..]) {
                    assert!(
                        word.as_ref().is_none_or(|word| word == real),
                        "{shell}, seed {seed}: {word:?}, {real}\n{script}"
                    );
                }
            }
        }
    }
    assert!(known * 3 >= all * 2, "only {known} of {all} values are known");
}
