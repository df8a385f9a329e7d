//! Startup code that would cost without bound. Its steps are counted; what lies beyond the limit is unknown.

use super::{SYSTEM, config, image, python_of};
use crate::start::ProcessState;

/// Why the interpreter's path is unknown, with a limit of 1,000 steps.
fn gap(files: &[(String, String)], command: &[&str]) -> Option<String> {
    let own = files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let files: Vec<_> = SYSTEM.into_iter().chain(own).collect();
    let mut rootfs = image(&files);
    rootfs.python_steps = 1_000;
    let python = python_of(&rootfs, Some(&config(&[("PATH", "/usr/bin")], command))).unwrap();
    let gap = python.program.as_ref().err().cloned();
    assert_eq!(python.import(&rootfs, "torch").err(), gap);
    assert!(gap.is_none() || (python.path.is_empty() && python.minor.is_none()), "a path in part counts as a path");
    gap.map(|gap| gap.why)
}

fn of_program(code: &str) -> Option<String> {
    gap(&[], &["python3", "-c", code])
}

fn of_site(text: &str) -> Option<String> {
    gap(&[("usr/lib/python3/dist-packages/a.pth".to_owned(), text.to_owned())], &["python3"])
}

#[track_caller]
fn assert_counted(gap: Option<String>) {
    let gap = gap.unwrap_or_default();
    assert!(gap.ends_with("the limit is 1000 (raise it with --limit python_steps=N)"), "'{gap}'");
}

#[test]
fn strings_that_double_and_lists_that_grow_are_counted() {
    let long = "a".repeat(2_000);
    for code in [
        "x='aa'\n".to_owned() + &"x=x+x\n".repeat(20) + "sys.path.append(x)\n",
        "x='aa'\n".to_owned() + &"x=os.path.join(x,x)\n".repeat(20),
        format!("x='{long}'\nsys.path+=[{}]\n", "x,".repeat(500)),
        format!("x='{long}'\n{}", "sys.path.insert(0,x)\n".repeat(200)),
        (0..500).fold(format!("x0='{long}'\n"), |code, n| code + &format!("x{}=x{n}+'a'\n", n + 1)),
        "x='a'\n".repeat(2_000),
        "sys.path[0:0]=['/a']\n".repeat(200),
    ] {
        assert_counted(of_program(&code));
    }
    assert_eq!(of_program(&("x='aa'\n".to_owned() + &"x=x+x\n".repeat(5) + "sys.path.append(x)\n")), None);
}

#[test]
fn lines_of_path_files_are_counted() {
    let moves = "import sys; new=sys.path[sys.__plen:]; del sys.path[sys.__plen:]; p=getattr(sys,'__egginsert',0); \
                 sys.path[p:p]=new; sys.__egginsert = p+len(new)\n";
    for text in [
        "import sys; sys.path.insert(0, '/x')\n".repeat(200),
        "import site; site.addsitedir('/none')\n".repeat(500),
        "import sys; sys.__plen = len(sys.path)\nimport sys; sys.path[0:0]=['/x','/y','/z']\n".to_owned()
            + &moves.repeat(500),
        "/none\n".repeat(2_000),
    ] {
        assert_counted(of_site(&text));
    }
    assert_eq!(of_site(&"/none\n".repeat(100)), None);
}

#[test]
fn folders_that_add_one_another_are_followed_to_a_depth() {
    let own = of_site("import site; site.addsitedir('/usr/lib/python3/dist-packages')\n").unwrap_or_default();
    assert_eq!(own, "/usr/lib/python3/dist-packages: more than 20 site directories add one another");
    let chain = |length: usize, times: usize| {
        let line = |number: usize| format!("import site; site.addsitedir('/c/{number}/site-packages')\n");
        let first = ("usr/lib/python3/dist-packages/a.pth".to_owned(), line(0));
        let rest =
            (0..length).map(|number| (format!("c/{number}/site-packages/a.pth"), line(number + 1).repeat(times)));
        gap(&std::iter::once(first).chain(rest).collect::<Vec<_>>(), &["python3"])
    };
    assert_eq!(chain(10, 1), None);
    assert_counted(chain(10, 2));
}

#[test]
fn the_limit_holds_for_each_interpreter() {
    let files: Vec<_> = SYSTEM.into_iter().chain([("usr/lib/python3/dist-packages/a.pth", "/x\n/y\n")]).collect();
    let mut rootfs = image(&files);
    rootfs.python_steps = 200;
    let call = super::PythonCall::plain("usr/bin/python3".into(), ProcessState::initial(&rootfs, None));
    for _ in 0..10 {
        assert!(super::Python::of(&rootfs, &call).unwrap().program.is_ok());
    }
}
