use super::*;

#[test]
fn a_comment() {
    let rules = nine_rules();
    insta::assert_snapshot!(document(Format::Markdown, &[(image(), outcomes(&rules))], None), @"
    ### ❌ Failed: `torch:2.9.0 (linux/amd64, sha256:aaaaaaaaaaaa)`

    1 error, 1 warning, 1 info, 2 waived, 2 unknown, 1 passed, 1 not applicable

    | | |
    | --- | --- |
    | digest | `sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa` |
    | torch | `2.9.0+cu128, built for CUDA 12.8` |
    | NCCL | `absent` |
    | linkage | `shared` |
    | libibverbs | `absent` |
    | providers | `absent` |

    <details><summary>🔴 error: <code>nccl/missing-library</code> title of nccl/missing-library</summary>

    `torch needs libnccl.so.2, which is nowhere in the image`

    - at `/usr/local/lib/python3.12/dist-packages/torch/lib/libtorch_cuda.so (DT_NEEDED), layer 2 of 3 (sha256:222222222222), RUN pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cu128 torch==2.9.0`

    **Owner:** image

    **Why:** Without it the ranks of a job talk over TCP sockets, and a step takes many times as long as it should on the same hosts.

    **Fix:**

    Do it:

    ```dockerfile
    ENV A=1
    ```

    </details>

    <details><summary>🟡 warning: <code>env/debug-on</code> title of env/debug-on</summary>

    `NCCL_DEBUG=INFO is part of the image`

    note: `a waiver of it expired`

    - at `image configuration, Env NCCL_DEBUG, ENV NCCL_DEBUG=INFO`

    **Owner:** image

    **Why:** Without it the ranks of a job talk over TCP sockets, and a step takes many times as long as it should on the same hosts.

    **Fix:**

    Do it:

    ```dockerfile
    ENV A=1
    ```

    </details>

    <details><summary>🔵 info: <code>env/noted</code> title of env/noted</summary>

    `it is noted`

    **Owner:** image

    **Why:** Without it the ranks of a job talk over TCP sockets, and a step takes many times as long as it should on the same hosts.

    **Fix:**

    Do it:

    ```dockerfile
    ENV A=1
    ```

    </details>

    <details><summary>❔ unknown, not ruled out: <code>rdma/unknown</code> title of rdma/unknown</summary>

    `layer 2 ends early; check the whole image`

    </details>

    <details><summary>❔ unknown, not ruled out: <code>env/warned</code> title of env/warned</summary>

    `layer 2 ends early; check the whole image`

    </details>

    <details><summary>☑️ waived: <code>rdma/no-provider</code> title of rdma/no-provider</summary>

    `there is no provider`

    waived: `the lab's switch has no RDMA` (`ncclcheck.yaml, line 4, until 2027-01-31`)

    </details>

    <details><summary>☑️ waived: <code>rdma/open</code> title of rdma/open</summary>

    `layer 2 ends early; check the whole image`

    waived: `the lab's switch has no RDMA` (`ncclcheck.yaml, line 4, until 2027-01-31`)

    </details>
    ");
}

#[test]
fn several_images_begin_with_their_verdicts() {
    let rules = nine_rules();
    let images =
        ["a", "b|c"].map(|reference| (ImageSummary { reference: reference.to_owned(), ..image() }, outcomes(&rules)));
    let text = document(Format::Markdown, &images, None);
    assert!(text.starts_with("| image | verdict |\n| --- | --- |\n| `a (linux/amd64, sha256:aaaa"), "{text}");
    assert!(text.contains("\n| `b\\|c (linux/amd64"), "{text}");
}

/// The text outside code spans and code blocks, the only text that can be markup.
#[expect(clippy::string_slice, reason = "cut at backticks")]
fn markup(text: &str) -> String {
    let mut markup = String::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.starts_with("```dockerfile") || (fenced && line == "```") {
            fenced = !fenced;
            continue;
        }
        if fenced {
            continue;
        }
        let mut rest = line;
        while let Some(start) = rest.find('`') {
            markup += &rest[..start];
            let fence: String = rest[start..].chars().take_while(|c| *c == '`').collect();
            let inside = &rest[start + fence.len()..];
            // A run of backticks of the same length ends the span.
            let mut at = 0;
            let end = loop {
                let Some(next) = inside[at..].find('`') else { panic!("no end of a code span: {line}") };
                let run = inside[at + next..].chars().take_while(|c| *c == '`').count();
                if run == fence.len() {
                    break at + next;
                }
                at += next + run;
            };
            rest = &inside[end + fence.len()..];
        }
        markup += rest;
        markup.push('\n');
    }
    markup
}

#[test]
fn values_are_never_markup() {
    let rules = rules();
    for hostile in [
        "`</code></details><script>x</script> @evil #1 [a](https://evil.example) ![b](c) | x | \\| y ``",
        "```\n# head\n| a | b |\n``` `x`` www.evil.example evil@evil.example",
        "\\`\\",
        "````",
        "",
    ] {
        let mut image = image();
        image.reference = hostile.to_owned();
        let mut facts = bad();
        facts.insert(key::IMAGE_ENV, Fact::seen(map(&[("NCCL_DEBUG", hostile)]), [file(1, hostile, Some(hostile))]));
        facts.insert(key::NCCL_LOADED_ROUTE, Fact::known(hostile.to_owned()));
        facts.insert(key::RDMA_VERBS, Fact::Unknown(Gap::new(hostile)));
        let judgements = judge(&rules, &facts, &ImageNames::default());
        let mut collection = Collection::default();
        let notices = [hostile.to_owned()];
        let report = Report { notices: &notices, ..report_of(&image, &facts, Some(&judgements)) };
        collection.add(&[report]);
        collection.miss(hostile, hostile);
        let text = finished(Format::Markdown, &collection);
        let markup = markup(&text);
        for evil in ["evil", "script", "# head", "](", "#1", "@"] {
            assert!(!markup.contains(evil), "{evil} in {markup}\n{text}");
        }
        assert_eq!(markup.matches("<details>").count(), markup.matches("</details>").count());
        // A row has as many cells as the table has columns.
        for row in text.lines().filter(|line| line.starts_with('|')) {
            assert_eq!(row.replace("\\|", "").matches('|').count(), 3, "{row}");
            assert!(!row.contains("\\\\|"), "{row}");
        }
    }
}

#[test]
fn a_comment_is_never_too_long() {
    let rules = nine_rules();
    let rule = rules.iter().next().unwrap();
    let failed = || {
        Outcome::Fail(Finding {
            message: "字".repeat(5000),
            at: vec![file(1, TORCH, None); 50],
            fix: String::new(),
            note: None,
        })
    };
    let judgements: Vec<_> = (0..500).map(|_| Judgement::new(rule, failed())).collect();
    let text = document(Format::Markdown, &[(image(), judgements)], None);
    let length = text.chars().count();
    assert!((60_000..65_536).contains(&length), "{length}");
    assert!(text.ends_with("left out**: the text is limited to the size of a comment.\n"), "{text}");
    assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
}
