//! What the evaluator knows of a script.

mod random;

use super::*;

/// No files and no programs.
struct Nothing(usize);

fn unknown(what: &str) -> ShellGap {
    ShellGap::new(format!("{what} is unknown"))
}

impl Surroundings for Nothing {
    fn spend(&mut self, steps: usize) -> bool {
        self.0 = self.0.saturating_sub(steps);
        self.0 > 0
    }

    fn text(&mut self, path: &str) -> Option<Result<ShellSource, ShellGap>> {
        const GIVEN: &str = "# paths\nA=1=2\n\n B = x y \nC=3";
        let given = || ShellSource { name: path.to_owned(), text: GIVEN.to_owned() };
        match path {
            "/given" => Some(Ok(given())),
            _ => (!path.starts_with("/none")).then(|| Err(unknown(path))),
        }
    }

    fn kind(&mut self, path: &str) -> Result<Option<FileKind>, ShellGap> {
        match path {
            "/" => Ok(Some(FileKind::Directory)),
            _ if path.starts_with("/none") => Ok(None),
            _ => Err(unknown(path)),
        }
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
        false
    }

    fn write(&mut self, _: &str, _: &(std::rc::Rc<str>, usize)) {}

    fn run(&mut self, _: &ProgramCall<'_>, _: &ShellState) -> Result<Option<StartMark>, ShellGap> {
        Ok(None)
    }
}

fn evaluate(kind: ShellKind, text: &str) -> ShellState {
    let mut state = ShellState::new(kind, "/opt/x/run.sh");
    state.export("PATH", Ok("/usr/bin:/bin".to_owned()));
    state.arguments = Ok(vec![Ok("one".to_owned()), Ok("two words".to_owned())]);
    let mut nothing = Nothing(20_000);
    let source = ShellSource { name: "script".to_owned(), text: text.to_owned() };
    Evaluator::new(&mut nothing, "run it").run(&mut state, &source);
    state
}

/// The value of a variable, `None` if it is not set, or why it is unknown.
fn value(state: &ShellState, name: &str) -> Result<Option<String>, ShellGap> {
    match state.variable(name) {
        Ok(Some(ShellValue::Text(text))) => Ok(Some(text.clone())),
        Ok(Some(ShellValue::List(list))) => Ok(list.first().cloned()),
        Ok(None) => Ok(None),
        Err(gap) => Err(gap.clone()),
    }
}

#[test]
fn lines_of_files_are_read_into_variables() {
    use ShellKind::{Bash, Dash, Posix};
    let known = |text: &str| Ok(Some(text.to_owned()));
    for (kind, text, name, expected) in [
        // The last line has no end, so that the loop does not run for it.
        (Posix, "while read -r x; do L=$L[$x]; done < /given", "L", known("[# paths][A=1=2][][B = x y]")),
        (
            Posix,
            "while IFS= read -r x || [ -n \"$x\" ]; do L=$L[$x]; done < /given",
            "L",
            known("[# paths][A=1=2][][ B = x y ][C=3]"),
        ),
        (
            Posix,
            "while IFS== read -r k v; do L=$L[$k,$v]; done < /given",
            "L",
            known("[# paths,][A,1=2][,][ B , x y ]"),
        ),
        (Posix, "while read k v; do L=$L[$k,$v]; done < /given; read x", "L", known("[#,paths][A=1=2,][,][B,= x y]")),
        (Bash, "while read -r x; do export \"$x\"; done < /given; L=$?", "A", known("1=2")),
        (Bash, "set -e; while read -r x; do export \"$x\"; done < /given", "A", Ok(None)),
        (Dash, "while read -r x; do export \"$x\"; done < /given; L=1", "L", Ok(None)),
        (Bash, "read -r L < /given; read -r L < /given", "L", known("# paths")),
        (Bash, "{ read -r x; read -r L; } < /given", "L", known("A=1=2")),
        (Bash, "{ (read -r x); read -r L; } < /given", "L", known("A=1=2")),
        (Bash, "{ echo x | cat; read -r L; } < /given", "L", known("# paths")),
        (Bash, "while read -r x; do L=$L$(echo $x | grep -v '^#'); done < /given", "L", known("A=1=2B = x y")),
        (Bash, "IFS=': ' read -r a b L <<< 'x : y:z w'", "L", known("z w")),
        (Bash, "export $(< /given)", "C", known("3")),
        (Bash, "export $(cat /given | grep -v '^#' | xargs)", "C", known("3")),
        (Bash, "export $(xargs < /given)", "C", known("3")),
        (Dash, "L=x$(< /given)", "L", known("x")),
    ] {
        assert_eq!(value(&evaluate(kind, text), name), expected, "{text}");
    }
    for text in [
        "IFS== read -r k L <<< 'a=b='",
        "read L <<< 'a\\b'",
        "read -r -n 1 L < /given",
        "read -r L < /other",
        "read -r L",
        "x < /none; { x; read -r L; } < /given",
        "{ y=$(x); read -r L; } < /given",
        "{ if x; then read -r y; fi; read -r L; } < /given",
        "echo 1 > /given; read -r L < /given",
    ] {
        assert!(value(&evaluate(ShellKind::Bash, text), "L").is_err(), "{text}");
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
        ("A=$((1 + 2 * 3)) B=$(( (1 + 2) * 3 )) C=$((-7 / 2))$((7 % 4))", &[("A", "7"), ("B", "9"), ("C", "-33")]),
        ("A=010; B=$((A + 0x10)); C=$((B > 3 && B < 9 ? 1 : 2))", &[("B", "24"), ("C", "2")]),
        ("A=$((B = 3)); A=$((A += 2))", &[("A", "5"), ("B", "3")]),
        ("A=$((0 && 1 / 0))$((1 || 1 / 0))", &[("A", "01")]),
        ("while getopts a:b o x -b -a 1 y; do A=$o; done; B=$OPTIND", &[("B", "1")]),
        (
            "set -- -b -a 1 -- y; while getopts :a:b o; do A=$A$o$OPTARG; done; shift $((OPTIND - 1)); B=$1",
            &[("A", "ba1"), ("B", "y")],
        ),
        (
            "set -- -a1 y; while getopts a: o; do A=$A$o$OPTARG; done; shift $((OPTIND - 1)); B=$1",
            &[("A", "a1"), ("B", "y")],
        ),
    ] {
        let state = evaluate(ShellKind::Posix, text);
        for (name, expected) in expected {
            assert_eq!(value(&state, name), Ok(Some((*expected).to_owned())), "{text}: {name}");
        }
    }
}

#[test]
fn values_of_bash_are_known() {
    for (text, expected) in [
        (
            "L=(a 'b c' d); A=${#L[@]}; B=${L[1]}; for x in \"${L[@]}\"; do C=$C/$x; done",
            &[("A", "3"), ("B", "b c"), ("C", "/a/b c/d")][..],
        ),
        ("B=bc; [[ $B == b* && -z $NONE ]] && D=1; E+=x; E+=y", &[("D", "1"), ("E", "xy")]),
        (
            "X=abcdef; A=${X:1} B=${X:1:2} C=${X: -2} D=${X:1:-1}${X:9}",
            &[("A", "bcdef"), ("B", "bc"), ("C", "ef"), ("D", "bcde")],
        ),
        (
            "set -- a b c; A=\"${*:2}\"; for x in \"${@:2:1}\"; do B=$x; done; C=${@: -1}",
            &[("A", "b c"), ("B", "b"), ("C", "c")],
        ),
        ("A=$BASH_SOURCE; B=$(dirname ${BASH_SOURCE[0]})", &[("A", "/opt/x/run.sh"), ("B", "/opt/x")]),
        ("L=(a b c); for x in \"${L[@]:1}\"; do A=$A$x; done", &[("A", "bc")]),
        (
            "X=a/b/a; A=${X/a/z} B=${X//a/z} C=${X//\\//-} D=${X//[ab]}",
            &[("A", "z/b/a"), ("B", "z/b/z"), ("C", "a-b-a"), ("D", "//")],
        ),
        ("X=aBc; A=${X^} B=${X^^} C=${X,,}; Y=X; D=${!Y}", &[("A", "ABc"), ("B", "ABC"), ("C", "abc"), ("D", "aBc")]),
        ("for ((i = 0; i < 3; i++)); do A=$A$i; done; B=$i", &[("A", "012"), ("B", "3")]),
        (
            "((A = 2)); ((A > 1)) && B=1; ((0)) || C=1; let 'D=A*2' A++",
            &[("A", "3"), ("B", "1"), ("C", "1"), ("D", "4")],
        ),
        ("A=$((2 ** 3 ** 2 % 500))$((1 << 4 | 1))$((~0))$((!3))", &[("A", "1217-10")]),
    ] {
        let state = evaluate(ShellKind::Bash, text);
        for (name, expected) in expected {
            assert_eq!(value(&state, name), Ok(Some((*expected).to_owned())), "{text}: {name}");
        }
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
        "A=$((${B:-$(x)} + 1))",
        "A=1; A=${A:0:1}",
        "A=$((0x))",
        "B=b; A=$((B + 1))",
        "A=$((1 / 0))",
        "x; A=$((A = $?))",
        "x; A=$?",
        "A=$((B = 1, B))",
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
    let of_arms = |word: &str, arm: &str| format!("case {word} in {} esac", arm.repeat(20_000));
    let wide = "v".repeat(60_000);
    let scripts = [
        deep,
        twice,
        recursive,
        endless,
        nested,
        "`".repeat(1000),
        "$(".repeat(5000),
        "((".repeat(3000),
        of_arms("x", "a) A=1;;"),
        of_arms("x", "x) A=1;&"),
        of_arms("$(unknown)", "a) A=1;;"),
        format!("true {}", "&& true ".repeat(20_000)),
        format!("unknown {}", "&& unknown || unknown ".repeat(20_000)),
        format!("if false; then A=1; {} fi", "elif false; then A=1; ".repeat(20_000)),
        format!("if unknown; then A=1; {} fi", "elif unknown; then A=1; ".repeat(20_000)),
        format!("{} {}", "A=1;".repeat(20), "if unknown; then :; fi; ".repeat(20_000)),
        format!("A={wide}; case $A in {}) ;; {}b) ;; esac", "?".repeat(60_000), "*v".repeat(20_000)),
        format!("A={wide}; {}", "B=${A//*v*v*b/c}; B=${A//v/$A}; ".repeat(500)),
        format!("A={wide}; echo {}", "$A".repeat(20_000)),
        format!("set -- ''; {} f() {{ f \"$@\"; }}; f", "set -- \"$@\" \"$@\"; ".repeat(60)),
    ];
    for text in scripts {
        let state = evaluate(ShellKind::Bash, &text);
        let _ = value(&state, "A");
    }
}

#[test]
fn what_a_script_does_beyond_its_budget_is_unknown() {
    let long = "X=vvvvvvvv;".to_owned() + &"X=$X$X;".repeat(12);
    for (text, is_known) in [
        (format!("{long} set -- {}; A=$#", "$X ".repeat(10)), true),
        (format!("{long} set -- {}; A=$#", "$X ".repeat(100)), false),
        (format!("{long} {} A=1", "B=$X;".repeat(100)), true),
        (format!("{long} {} A=1", "B=$X;".repeat(1000)), false),
        (format!("{} A=1", "if unknown; then B=1; else B=1; fi;".repeat(100)), true),
        (format!("{} B=1; {} A=1", "if unknown; then ".repeat(20), "fi;".repeat(20)), true),
        ("case unknown in *nk*n*) A=1;; esac".to_owned(), true),
        (format!("case unknown in {}) A=1;; *) A=1;; esac", "*n".repeat(200)), true),
    ] {
        let state = evaluate(ShellKind::Bash, &text);
        assert_eq!(value(&state, "A").is_ok(), is_known, "{}", text.get(..200).unwrap_or(&text));
    }
}

#[test]
fn a_script_is_read_as_its_shell_does() {
    use ShellKind::{Bash, Busybox, Dash, PosixBash};
    for (kind, text, expected) in [
        (Dash, "[ a == a ] && A=1; B=1", Ok(None)),
        (Dash, "A=$'x'", Ok(Some("$x"))),
        (Dash, "A=$(echo -e x)", Ok(Some("-e x"))),
        (Dash, "cd /none &> /dev/null && A=1", Ok(Some("1"))),
        (Bash, "cd /none &> /dev/null && A=1", Ok(None)),
        (Dash, "A=1; A+=2", Ok(Some("1"))),
        (Dash, "A=1; B=(x)", Err((1, ScriptCause::OfBash))),
        (Dash, "A=1\nf() {\n  cat <<< x\n}", Err((3, ScriptCause::OfBash))),
        (Dash, "case x in x) A=1 ;& y) : ;; esac", Err((1, ScriptCause::OfBash))),
        (Dash, "function f { A=1; }", Err((1, ScriptCause::OfBash))),
        (Dash, "A=1; B=${A//1/2}", Err((1, ScriptCause::OfBash))),
        (Dash, "set -euo pipefail; A=1", Err((1, ScriptCause::OfBash))),
        (Dash, "export -f f; A=1", Err((1, ScriptCause::OfBash))),
        (Busybox, "A=ab; A=${A//a/b}; [[ $A == b* ]] && A=$A${A:0:1}", Ok(Some("bbb"))),
        (PosixBash, "L=(1 2); A=${L[1]}; exec > >(cat)", Ok(Some("2"))),
        (PosixBash, ". /none/x || A=1; A=2", Ok(None)),
        (Bash, "A=$'a\\tb'", Ok(Some("a\tb"))),
        (Bash, "A=1\r\nB=2", Ok(Some("1\r"))),
        (Bash, "if :; then\r\n  A=1\r\nfi\r\n", Err((4, ScriptCause::LineEnds))),
        (Bash, "X=a:b::c; IFS=:; set -- $X; A=$#$4", Ok(Some("4c"))),
        (Bash, "readonly A=1; A=2; A=3", Err((1, ScriptCause::Surroundings))),
        (Bash, "set -u; A=1; B=$NONE; A=2", Err((1, ScriptCause::Surroundings))),
        (Bash, "cd /none/x && A=1", Err((1, ScriptCause::Surroundings))),
    ] {
        let state = evaluate(kind, text);
        let found = match state.fault.as_ref().filter(|_| state.fails()) {
            Some(fault) if expected.is_err() => Err((fault.place.1, fault.cause)),
            _ => Ok(value(&state, "A").unwrap_or_else(|gap| panic!("{text}: {gap}"))),
        };
        assert_eq!(found, expected.map(|value| value.map(str::to_owned)), "{kind:?} {text}");
    }
}
