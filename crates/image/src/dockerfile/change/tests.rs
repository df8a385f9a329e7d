use super::*;

fn parse(text: &str) -> Dockerfile {
    Dockerfile::parse("Dockerfile".to_owned(), text).unwrap()
}

/// The text without these variables.
fn without(text: &str, names: &[&str]) -> String {
    let dockerfile = parse(text);
    let mut changes = DockerfileChanges::default();
    for name in names {
        dockerfile.unset(name, &mut changes).unwrap();
    }
    let changed = dockerfile.changed(&changes);
    let again = parse(&changed);
    assert!(names.iter().all(|name| again.value(name).is_none()), "{changed}");
    let others = dockerfile.variables().into_iter().filter(|name| !names.contains(name));
    others.for_each(|name| {
        assert_eq!(again.value(name).map(|(value, _)| value), dockerfile.value(name).map(|(value, _)| value));
    });
    changed
}

#[test]
fn an_assignment_goes_and_its_neighbours_stay() {
    for (env, gone, expected) in [
        ("ENV A=1\n", &["A"][..], ""),
        ("ENV A 1 2 3\n", &["A"], ""),
        ("ENV A=1 B=2\n", &["A"], "ENV B=2\n"),
        ("ENV A=1 B=2\n", &["B"], "ENV A=1\n"),
        ("ENV A=1 B=2 C=3\n", &["B"], "ENV A=1 C=3\n"),
        ("ENV A=1 B=2 C=3\n", &["A", "C"], "ENV B=2\n"),
        ("ENV A=1 B=2\n", &["A", "B"], ""),
        ("ENV A=1 \\\n    B=2 \\\n    C=3\n", &["A"], "ENV B=2 \\\n    C=3\n"),
        ("ENV A=1 \\\n    B=2 \\\n    C=3\n", &["B"], "ENV A=1 \\\n    C=3\n"),
        ("ENV A=1 \\\n    B=2 \\\n    C=3\n", &["C"], "ENV A=1 \\\n    B=2\n"),
        ("ENV A=1 \\\n    B=2 \\\n    C=3\n", &["B", "C"], "ENV A=1\n"),
        ("ENV A=1 \\\n    B=2 \\\n    C=3\n", &["A", "B"], "ENV C=3\n"),
        ("ENV \\\n    A=1 \\\n    B=2\n", &["A"], "ENV \\\n    B=2\n"),
        // Comments stay, and those between two assignments that both go do not.
        ("ENV A=1 \\\n    # of B\n    B=2\n", &["A"], "ENV  \\\n    # of B\n    B=2\n"),
        ("ENV A=1 \\\n    # of B\n    B=2 \\\n    C=3\n", &["B"], "ENV A=1 \\\n    # of B\n    C=3\n"),
        ("ENV A=1 B=2 \\\n    C=3\n", &["B"], "ENV A=1 \\\n    C=3\n"),
        // Quotes, escapes, other cases.
        ("ENV A=\"1 B=2\" C='3 \\' D=4\\ 5\n", &["C"], "ENV A=\"1 B=2\" D=4\\ 5\n"),
        ("env A=1 B=2\n", &["A"], "env B=2\n"),
        ("  ENV A=1\n", &["A"], ""),
        ("ENV A=1\r\nENV B=2\r\n", &["A"], "ENV B=2\r\n"),
        ("ENV A=1\n# about B\nENV B=1\nENV A=2", &["A"], "# about B\nENV B=1\n"),
    ] {
        assert_eq!(
            without(&format!("FROM a\n{env}CMD x\n").replace("ENV A=2CMD", "ENV A=2\nCMD"), gone),
            format!("FROM a\n{expected}CMD x\n"),
            "{env}"
        );
    }
}

#[test]
fn the_escape_directive_and_other_instructions_are_kept() {
    let text = "# escape=`\nFROM a\nENV A=1 `\n    B=2\nONBUILD ENV A=1\nRUN <<EOF\nENV A=1\nEOF\n";
    assert_eq!(without(text, &["A"]), text.replace("A=1 `\n    B", "B"));
}

#[test]
fn only_stages_of_the_image_change() {
    let text = "FROM a AS base\nENV A=1\nFROM b AS tools\nENV A=2\nFROM base\nENV A=3 B=1\n";
    assert_eq!(without(text, &["A"]), "FROM a AS base\nFROM b AS tools\nENV A=2\nFROM base\nENV B=1\n");
}

#[test]
fn what_cannot_be_removed_is_refused() {
    let dockerfile = parse("FROM a\nENV A=1 AB=2\nRUN echo $AB ${B}\n# $A\nENV C=${A}x\n");
    let mut changes = DockerfileChanges::default();
    let refused = dockerfile.unset("D", &mut changes).unwrap_err();
    assert_eq!(refused.to_string(), "the base image sets D, not this Dockerfile");
    let refused = dockerfile.unset("A", &mut changes).unwrap_err();
    assert_eq!(refused.to_string(), "line 5 uses $A");
    assert!(changes.is_empty() && dockerfile.diff(&changes).is_empty());
}

#[test]
fn a_value_is_replaced_or_added_after_from() {
    for (text, value, expected) in [
        ("FROM a\nENV A=1 B=2\n", "x", "FROM a\nENV A=x B=2\n"),
        ("FROM a\nENV A 1 2\n", "x y", "FROM a\nENV A=\"x y\"\n"),
        ("FROM a\nENV B=2\n", "", "FROM a\nENV A=\nENV B=2\n"),
        ("FROM a AS b\nENV A=1\nFROM b\n# note\nENV B=1\n", "2", "FROM a AS b\nENV A=2\nFROM b\n# note\nENV B=1\n"),
        ("FROM a AS b\nRUN x\nFROM b", "2", "FROM a AS b\nRUN x\nFROM b\nENV A=2\n"),
        ("# escape=`\nFROM a\n", "x$\"`", "# escape=`\nFROM a\nENV A=\"x`$`\"``\"\n"),
    ] {
        let dockerfile = parse(text);
        let mut changes = DockerfileChanges::default();
        dockerfile.set("A", value, &mut changes);
        assert_eq!(dockerfile.changed(&changes), expected);
    }
}

#[test]
fn a_folder_leaves_its_list() {
    for (env, expected) in [
        ("P=/a:/b:/c", Some("P=/a:/c")),
        ("P=/b:/c", Some("P=/c")),
        ("P=/a:/b", Some("P=/a")),
        ("P=/b", Some("P=")),
        ("P=/b:$P", Some("P=$P")),
        ("P=\"/b:${P}\"", Some("P=\"${P}\"")),
        ("P=/bb:/x/b:/b/c", None),
        ("P=$X/b", None),
    ] {
        let dockerfile = parse(&format!("FROM a\nENV {env}\n"));
        let mut changes = DockerfileChanges::default();
        let removed = dockerfile.remove_folder("P", "/b", &mut changes);
        assert_eq!(removed.is_ok(), expected.is_some(), "{env}");
        assert_eq!(dockerfile.changed(&changes), format!("FROM a\nENV {}\n", expected.unwrap_or(env)));
    }
}

#[test]
fn instructions_follow_the_one_that_made_the_files() {
    let text = "FROM a AS build\nRUN pip install \\\n    torch\n# end\n\nFROM b\nRUN <<EOF\napt install x\nEOF\n# note\nUSER me\n\
                COPY --from=build /v /v\nCOPY --from=c:1 /v /v\nRUN z\nENV A=1\nRUN last\nCMD x";
    let dockerfile = parse(text);
    let with = |line: Option<usize>| {
        let mut changes = DockerfileChanges::default();
        dockerfile.add(line, "RUN y", &mut changes).map(|()| dockerfile.changed(&changes))
    };
    let after = |part: &str| text.replacen(part, &format!("{part}RUN y\n"), 1);
    assert_eq!(with(None).unwrap(), after("FROM b\n"));
    assert_eq!(with(Some(7)).unwrap(), after("apt install x\nEOF\n"));
    assert_eq!(with(Some(12)).unwrap(), after("    torch\n"));
    assert_eq!(with(Some(13)).unwrap_err(), ChangeRefusal::Foreign(13));
    assert_eq!(with(Some(14)).unwrap(), after("RUN last\n"));
    assert_eq!(parse("FROM a").changed(&DockerfileChanges::default()), "FROM a");
}

#[test]
fn a_diff_has_context_and_numbers() {
    let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n";
    let after = "1\n2\n3\n4\nx\n6\n7\n8\n9\n10\n11\n12\n13\n14\n";
    let expected =
        "--- D\n+++ D\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n@@ -11,3 +11,4 @@\n 11\n 12\n 13\n+14\n";
    assert_eq!(unified("D", before, after, CONTEXT), expected);
    assert_eq!(unified("D", before, before, CONTEXT), "");
}

#[test]
fn a_diff_of_texts_without_a_newline_and_of_empty_texts() {
    let expected = "--- D\n+++ D\n@@ -1,2 +1 @@\n a\n-b\n\\ No newline at end of file\n";
    assert_eq!(unified("D", "a\nb", "a\n", CONTEXT), expected);
    assert_eq!(unified("D", "", "a\r\n", CONTEXT), "--- D\n+++ D\n@@ -0,0 +1 @@\n+a\r\n");
    assert_eq!(unified("D", "a\n", "", CONTEXT), "--- D\n+++ D\n@@ -1 +0,0 @@\n-a\n");
    assert_eq!(unified("D", "a\rb\n", "c\n", CONTEXT), "--- D\n+++ D\n@@ -1 +1 @@\n-a\rb\n+c\n");
}

#[test]
fn a_diff_of_many_lines_takes_no_square_of_their_number() {
    let before = "RUN a\nENV A=1\n".repeat(50_000);
    let diff = unified("D", &before, &"RUN a\n".repeat(50_000), CONTEXT);
    assert!(diff.contains("-ENV A=1\n"), "{diff}");
}

#[test]
fn a_build_argument_gets_another_default_wherever_it_has_one() {
    let set = |text: &str| {
        let mut changes = DockerfileChanges::default();
        let dockerfile = parse(text);
        dockerfile.set_argument("URL", "https://x/simple", &mut changes).map(|()| dockerfile.changed(&changes))
    };
    for (text, expected) in [
        ("FROM a\nARG URL=https://x/cpu\nRUN b\n", "FROM a\nARG URL=https://x/simple\nRUN b\n"),
        ("ARG URL=\"https://x/cpu\" B=1\nFROM a\nARG URL\n", "ARG URL=https://x/simple B=1\nFROM a\nARG URL\n"),
    ] {
        assert_eq!(set(text).as_deref(), Ok(expected));
    }
    assert_eq!(set("FROM a\nARG URL\n"), Err(ChangeRefusal::NoDefault("URL".to_owned())));
    assert_eq!(set("FROM a\nENV URL=x\n"), Err(ChangeRefusal::NoDefault("URL".to_owned())));
}
