//! What is known of random scripts is what dash and bash compute.

use std::path::Path;
use std::process::Command;

use super::*;

/// A generator of scripts (Knuth's linear congruential one).
struct Generator {
    seed: u64,
    is_bash: bool,
}

impl Generator {
    fn below(&mut self, limit: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.seed >> 33).unwrap() % limit
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
        match self.below(if self.is_bash { 23 } else { 19 }) {
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
            17 => format!("$((${{#{name}}} {} {}))", self.pick(&["+", "-", "*", "%", "<", "=="]), 1 + self.below(3)),
            18 => self.pick(&["$(( ($# + 1) * 2 ))", "$(($# ? 1 : 2))", "$((N = $# + 1))", "$((-$#))"]).to_owned(),
            19 => format!("${{{name}:{}}}", self.pick(&["1", " -1", "0:1", "1:2", "0:-0", "$#", "9"])),
            20 => format!(
                "${{{name}{}{}/{}}}",
                self.pick(&["/", "//"]),
                self.pick(&["a", "b*", "[ab]", "?"]),
                self.pick(&["", "z", "$#"])
            ),
            21 => format!("${{{name}{}}}", self.pick(&["^", "^^", ",", ",,"])),
            22 => self.pick(&["\"${@:2}\"", "\"${@:1:1}\"", "${*:2}", "${@: -1}", "\"${*:0:1}\""]).to_owned(),
            _ => self.pick(&["a", "b", "a:b", "/x/y", "ab.c", "7", "-n"]).to_owned(),
        }
    }

    fn word(&mut self, depth: usize) -> String {
        (0..=self.below(2)).map(|_| self.atom(depth)).collect()
    }

    fn condition(&mut self) -> String {
        // bash 5.2 matches no pattern with the word `${A-""}x` of `case`, so that word is a simple one.
        let one = self.pick(&["a", "$A", "\"$B\"", "${C:-b}"]).to_owned();
        let two = self.word(1);
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
        let name = self.name();
        let word = self.word(1);
        if depth == 0 {
            return format!("{name}={word}");
        }
        let one = self.statement(depth - 1);
        let two = self.statement(depth - 1);
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
            17 if self.is_bash => format!("for ((i = 0; i < $#; i++)); do C=$C$i; {one}; done"),
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
        .args(["0.5", shell, "-c", &whole, "/opt/x/run.sh", "one", "two words"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/");
    let output = command.output().unwrap();
    String::from_utf8_lossy(&output.stdout).split('\0').map(str::to_owned).collect()
}

#[test]
fn known_values_are_those_of_real_shells() {
    let mut known = 0;
    let mut all = 0;
    for (shell, kind) in [("/bin/dash", ShellKind::Posix), ("/bin/bash", ShellKind::Bash)] {
        if !Path::new(shell).exists() {
            continue;
        }
        for seed in (0..500_usize).skip(usize::from(kind == ShellKind::Bash)).step_by(2) {
            let script =
                Generator { seed: u64::try_from(seed).unwrap() * 7919 + 1, is_bash: kind == ShellKind::Bash }.script();
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
