use unicode_width::UnicodeWidthStr as _;

use super::*;
use facts::records::NcclCopy;

#[test]
fn a_good_image() {
    insta::assert_snapshot!(check(&good(), &style(80, false)), @"
    PASS  torch:2.9.0 (linux/amd64): 3 layers, 4 rules

      source      docker://registry.example:5000/ml/torch:2.9.0
      manifest    sha256:aaaaaaaaaaaa
      layers      3, 3.6 GiB (9.1 GiB unpacked)
      torch       2.9.0+cu128, built for CUDA 12.8
      NCCL        2.27.5
        /usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2
      linkage     shared, DT_RUNPATH $ORIGIN/../../nvidia/nccl/lib
      libibverbs  /usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.39.0
      providers   efa, mlx5

    PASSED: 0 errors, 0 warnings, 0 unknown, 3 passed, 1 not applicable
    ");
    insta::assert_snapshot!(check(&good(), &style(120, true)), @"
    PASS  torch:2.9.0 (linux/amd64): 3 layers, 4 rules

      source      docker://registry.example:5000/ml/torch:2.9.0
      manifest    sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
      layers      3, 3.6 GiB (9.1 GiB unpacked)
      torch       2.9.0+cu128, built for CUDA 12.8
      NCCL        2.27.5
                  /usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2
      linkage     shared, DT_RUNPATH $ORIGIN/../../nvidia/nccl/lib
      libibverbs  /usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.39.0
      providers   efa, mlx5

    passed: none of these problems was found
      nccl/missing-library  the NCCL that torch needs is missing
      rdma/no-provider      no RDMA provider in user space
      torch/not-found       no PyTorch in the image

    not applicable: these problems cannot occur here
      env/debug-on  NCCL's log is on

    PASSED: 0 errors, 0 warnings, 0 unknown, 3 passed, 1 not applicable
    ");
}

/// The report of three rules, the last of which has no answer, with what follows from the first below it.
fn folded(documents: &[(String, String); 3]) -> String {
    let documents: Vec<_> = documents.iter().map(|(id, text)| (&**id, &**text)).collect();
    let rules = RuleSet::from_yaml(&documents).unwrap();
    let mut judgements = judge(&rules, &Facts::default(), &ImageNames::default());
    judgements[2].outcome = Outcome::Unknown(vec![Gap::new("the step was skipped")]);
    judge::consequences::fold(&mut judgements);
    let image = image();
    let facts = Facts::default();
    let mut out = Vec::new();
    Format::Human.write(&[report_of(&image, &facts, Some(&judgements))], &style(80, false), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn consequences_are_shown_below_their_cause() {
    let text = folded(&[
        rule("a/cause", "error", "the cause", "Do it.", "check: 'false'\nmessage: the cause is here\nexplains: [b/*]"),
        rule("b/low", "error", "low bandwidth", "Do it.", "check: 'false'\nmessage: 3 GB/s are too few"),
        rule("b/open", "error", "open", "Do it.", "check: 'true'\nmessage: m"),
    ]);
    let finding: Vec<_> = text.lines().skip_while(|line| !line.starts_with("error")).collect();
    insta::assert_snapshot!(finding.join("\n"), @"
    error[a/cause]: the cause is here
      of   image
      why  Without it the ranks of a job talk over TCP sockets, and a step takes
           many times as long as it should on the same hosts.
      fix  Do it.
      so   3 GB/s are too few (b/low)
           1 rule has no answer; --format json lists them

    FAILED: 1 error, 0 warnings, 2 consequences, 0 unknown, 0 passed, 0 not applicable
    ");
}

#[test]
fn a_pass_says_what_a_consequence_leaves_out() {
    let text = folded(&[
        rule("a/cause", "warning", "the cause", "Do it.", "check: 'false'\nmessage: m\nexplains: [b/*]"),
        rule("b/low", "warning", "low", "Do it.", "check: 'false'\nmessage: m\nwithout: RDMA between hosts"),
        rule("b/open", "warning", "open", "Do it.", "check: 'true'\nmessage: m\nwithout: NVLink"),
    ]);
    assert!(text.starts_with("PASS with 1 warning, 2 consequences (no RDMA between hosts)"), "{text}");
}

#[test]
fn a_failing_image_at_80() {
    insta::assert_snapshot!(check(&bad(), &style(80, false)), @r"
    FAIL  torch:2.9.0 (linux/amd64): 3 layers, 4 rules

      source      docker://registry.example:5000/ml/torch:2.9.0
      manifest    sha256:aaaaaaaaaaaa
      layers      3, 3.6 GiB (9.1 GiB unpacked)
      torch       2.9.0+cu128, built for CUDA 12.8
      NCCL        absent
      linkage     shared
      libibverbs  absent
      providers   absent

    error[nccl/missing-library]: torch needs libnccl.so.2, which is nowhere in the
      image
      at   /usr/local/lib/python3.12/dist-packages/torch/lib/libtorch_cuda.so
           (DT_NEEDED)
           layer 2 of 3 (sha256:222222222222)
           RUN pip install --no-cache-dir --index-url https://download.pytorch.org/…
      of   image
      why  Without it the ranks of a job talk over TCP sockets, and a step takes
           many times as long as it should on the same hosts.
      fix  RUN apt-get update && apt-get install -y --no-install-recommends libnccl2=2.27.5-1+cuda12.9 \
            && rm -rf /var/lib/apt/lists/*

    warning[env/debug-on]: NCCL_DEBUG=INFO is part of the image
      at   image configuration, Env NCCL_DEBUG
           ENV NCCL_DEBUG=INFO
      of   image
      why  Without it the ranks of a job talk over TCP sockets, and a step takes
           many times as long as it should on the same hosts.
      fix  Leave NCCL_DEBUG to the job that needs it, or write only what matters:
           ENV NCCL_DEBUG=WARN

    FAILED: 1 error, 1 warning, 0 unknown, 1 passed, 1 not applicable
    ");
}

#[test]
fn a_failing_image_at_120() {
    insta::assert_snapshot!(check(&bad(), &style(120, false)), @r"
    FAIL  torch:2.9.0 (linux/amd64): 3 layers, 4 rules

      source      docker://registry.example:5000/ml/torch:2.9.0
      manifest    sha256:aaaaaaaaaaaa
      layers      3, 3.6 GiB (9.1 GiB unpacked)
      torch       2.9.0+cu128, built for CUDA 12.8
      NCCL        absent
      linkage     shared
      libibverbs  absent
      providers   absent

    error[nccl/missing-library]: torch needs libnccl.so.2, which is nowhere in the image
      at   /usr/local/lib/python3.12/dist-packages/torch/lib/libtorch_cuda.so (DT_NEEDED)
           layer 2 of 3 (sha256:222222222222)
           RUN pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cu128 torch==2.9…
      of   image
      why  Without it the ranks of a job talk over TCP sockets, and a step takes many times as long as
           it should on the same hosts.
      fix  RUN apt-get update && apt-get install -y --no-install-recommends libnccl2=2.27.5-1+cuda12.9 \
            && rm -rf /var/lib/apt/lists/*

    warning[env/debug-on]: NCCL_DEBUG=INFO is part of the image
      at   image configuration, Env NCCL_DEBUG
           ENV NCCL_DEBUG=INFO
      of   image
      why  Without it the ranks of a job talk over TCP sockets, and a step takes many times as long as
           it should on the same hosts.
      fix  Leave NCCL_DEBUG to the job that needs it, or write only what matters:
           ENV NCCL_DEBUG=WARN

    FAILED: 1 error, 1 warning, 0 unknown, 1 passed, 1 not applicable
    ");
}

#[test]
fn an_incomplete_image() {
    let mut image = image();
    image.notes = vec!["the index offers linux/arm64/v8 as well".to_owned()];
    let report = rendered(&image, &hidden(), Some(&rules()), Format::Human, &style(80, false));
    insta::assert_snapshot!(report, @"
    INCOMPLETE  torch:2.9.0 (linux/amd64): 3 layers, 4 rules

      source      docker://registry.example:5000/ml/torch:2.9.0
      manifest    sha256:aaaaaaaaaaaa
      layers      3, 3.6 GiB (9.1 GiB unpacked)
      torch       2.9.0+cu128, built for CUDA 12.8
      NCCL        unknown: the file system ends in the middle of layer 2; check the
                  whole image
      linkage     shared
      libibverbs  /usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.39.0
      providers   efa, mlx5

    unknown: the file system ends in the middle of layer 2
      help  check the whole image
      not ruled out:
      nccl/missing-library  the NCCL that torch needs is missing

    note: the index offers linux/arm64/v8 as well

    INCOMPLETE: 0 errors, 0 warnings, 1 unknown, 2 passed, 1 not applicable
    ");
}

#[test]
fn a_gap_of_several_rules_is_shown_once() {
    let mut facts = hidden();
    let gap = facts.view(&key::NCCL_LOADED_PATH).clone();
    facts.insert_value(key::TORCH_VERSION.definition, gap);
    let report = check(&facts, &style(80, false));
    let unknowns = report.split("\n\n").find(|block| block.starts_with("unknown:")).unwrap();
    insta::assert_snapshot!(unknowns, @"
    unknown: the file system ends in the middle of layer 2
      help  check the whole image
      not ruled out:
      nccl/missing-library  the NCCL that torch needs is missing
      torch/not-found       no PyTorch in the image
    ");
}

fn inspected() -> Facts {
    let mut facts = bad();
    let text = |text: &str| Some(text.to_owned());
    let copy = |path, version| NcclCopy { path: text(path), version: text(version), ..NcclCopy::default() };
    let first = NcclCopy { cuda: text("12.9"), soname: text("libnccl.so.2"), ..copy(NCCL, "2.27.5") };
    let copies = vec![first, copy("/opt/libnccl.so.2", "2.18.1")];
    facts.insert(key::NCCL_COPIES, Fact::seen(copies, [file(1, NCCL, None)]));
    let flags = "-fvisibility-inlines-hidden -DUSE_PTHREADPOOL -DNDEBUG -DUSE_KINETO -O2 -fPIC -Wall -Wextra";
    let build = map(&[("CXX_FLAGS", flags), ("USE_NCCL", "1"), ("BLAS_INFO", "mkl")]);
    facts.insert(key::TORCH_BUILD, Fact::seen(build.clone(), [file(1, TORCH, None)]));
    facts.insert(key::TORCH_BUILD_CODE, Fact::seen(build, [file(1, TORCH, None)]));
    let names = ["HOME", "LANG", "PATH", "PYTHONUNBUFFERED", "DEBIAN_FRONTEND", "LIBRARY_PATH", "CUDA_HOME", "SHELL"];
    facts.insert(key::IMAGE_OTHER_ENV, Fact::known(names.map(ToOwned::to_owned).to_vec()));
    facts.insert(key::CUDA_CUDART_MAJORS, Fact::known(vec![12]));
    facts.insert(key::CUDA_CUDART_MISSING, Fact::known(Vec::new()));
    facts.insert(key::IMAGE_OS, Fact::Unknown(Gap::new("/etc/os-release was too large to be read")));
    facts
}

/// The part of an inspection about one area.
fn area(report: &str, name: &str) -> String {
    let blocks = report.split("\n\n");
    blocks.into_iter().find(|block| block.starts_with(&format!("{name}\n"))).unwrap().to_owned()
}

#[test]
fn an_inspection() {
    let report = inspect(&inspected(), &style(80, false));
    insta::assert_snapshot!(report.split("\n\n").take(2).collect::<Vec<_>>().join("\n\n"), @"
    torch:2.9.0 (linux/amd64): 3 layers

      source      docker://registry.example:5000/ml/torch:2.9.0
      manifest    sha256:aaaaaaaaaaaa
      layers      3, 3.6 GiB (9.1 GiB unpacked)
    ");
    insta::assert_snapshot!(area(&report, "image"), @"
    image
      os         unknown: /etc/os-release was too large to be read
      env
        NCCL_DEBUG  INFO
      other_env  HOME, LANG, PATH, PYTHONUNBUFFERED, DEBIAN_FRONTEND, LIBRARY_PATH,
                 CUDA_HOME, SHELL
    ");
    insta::assert_snapshot!(area(&report, "torch"), @"
    torch
      version       2.9.0+cu128
      cuda.version  12.8
      build
        BLAS_INFO  mkl
        CXX_FLAGS  -fvisibility-inlines-hidden -DUSE_PTHREADPOOL -DNDEBUG -DUSE_KIN…
        USE_NCCL   1
      build_code    same as build
      nccl_linkage  shared
    ");
    insta::assert_snapshot!(area(&report, "nccl"), @"
    nccl
      copies
        /usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2
          cuda 12.9, soname libnccl.so.2, version 2.27.5
        /opt/libnccl.so.2
          version 2.18.1
    ");
    insta::assert_snapshot!(area(&report, "cuda"), @"
    cuda
      cudart_majors   12
      cudart_missing  none
    ");
}

#[test]
fn an_inspection_counts_what_is_absent() {
    let short = inspect(&inspected(), &style(80, false));
    let full = inspect(&inspected(), &style(80, true));
    let absent = full.lines().filter(|line| line.ends_with(" absent")).count();
    let last = short.trim_end().rsplit("\n\n").next().unwrap();
    let counts: Vec<usize> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert_eq!(counts.iter().sum::<usize>(), absent, "{last}");
    assert!(!short.lines().any(|line| line.ends_with(" absent")), "{short}");
}

#[test]
fn an_inspection_in_full() {
    let report = inspect(&inspected(), &style(80, true));
    insta::assert_snapshot!(area(&report, "torch"), @"
    torch
      installs              absent
      path                  absent
      shadow                absent
      shadowed_modules      absent
      not_imported          absent
      other_python          absent
      other_home            absent
      other_venv            absent
      build_argument        absent
      build_index           absent
      vendor                absent
      unreadable            absent
      version               2.9.0+cu128
      git_version           absent
      cuda.version          12.8
        at  /usr/local/lib/python3.12/dist-packages/torch/lib/libtorch_cuda.so
            (DT_NEEDED), layer 2 of 3 (sha256:222222222222)
      cuda.driver_min       absent
      cuda.build            absent
      build
        BLAS_INFO  mkl
        CXX_FLAGS  -fvisibility-inlines-hidden -DUSE_PTHREADPOOL -DNDEBUG
                   -DUSE_KINETO -O2 -fPIC -Wall -Wextra
        USE_NCCL   1
        at  /usr/local/lib/python3.12/dist-packages/torch/lib/libtorch_cuda.so,
            layer 2 of 3 (sha256:222222222222)
      build_code            same as build
        at  /usr/local/lib/python3.12/dist-packages/torch/lib/libtorch_cuda.so,
            layer 2 of 3 (sha256:222222222222)
      build_header          absent
      build_contradictions  absent
      cxx11_abi             absent
      arch_list             absent
      use_nccl              absent
      nccl_linkage          shared
        at  /usr/local/lib/python3.12/dist-packages/torch/lib/libtorch_cuda.so
            (DT_NEEDED), layer 2 of 3 (sha256:222222222222)
      process_group_nccl    absent
      cudart_needed         absent
      loaded                absent
      import_error          absent
      import_cause          absent
      missing_requirements  absent
      numpy                 absent
      cudnn                 absent
      cudnn_path            absent
      cudnn_built           absent
      nccl_pin              absent
      installer             absent
    ");
}

#[test]
fn colours_change_no_text() {
    let mut colored = style(80, true);
    colored.color = true;
    let paint = regex::Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    for facts in [good(), bad(), hidden()] {
        for render in [check, inspect] {
            let painted = render(&facts, &colored);
            assert!(painted.contains("\u{1b}["));
            assert_eq!(paint.replace_all(&painted, ""), render(&facts, &style(80, true)));
        }
    }
}

#[test]
fn lines_fit_the_terminal() {
    for width in [0, 40, 60, 80, 100, 200] {
        let room = width.clamp(40, 100);
        for report in [check(&good(), &style(width, true)), inspect(&inspected(), &style(width, true))] {
            for line in report.lines().skip(1) {
                let words = line.split_whitespace().count();
                assert!(line.width() <= room || words == 1 || line.starts_with("PASSED"), "{width}: {line}");
                assert_eq!(line.trim_end(), line);
            }
        }
    }
}

#[test]
fn sites_beyond_the_limit_are_counted_unless_verbose() {
    let mut facts = bad();
    let at: Vec<_> = (0..9).map(|index| file(index / 5, &format!("/lib/{index}.so"), None)).collect();
    facts.insert(key::TORCH_NCCL_LINKAGE, Fact::seen(Linkage::Shared, at));
    let report = check(&facts, &style(80, false));
    assert!(report.contains("/lib/4.so") && !report.contains("/lib/8.so") && report.contains("and 4 more"), "{report}");
    let report = check(&facts, &style(80, true));
    assert!(report.contains("/lib/8.so") && !report.contains(" more\n"), "{report}");
}

#[test]
fn a_fix_keeps_its_lines() {
    let (id, text) = rule(
        "a/b",
        "info",
        "a title",
        "Prose is wrapped where the terminal ends,\nas all other prose is, and more of it here.\n\nRUN a \\\n && b",
        "check: 'false'\nmessage: a message",
    );
    let rules = RuleSet::from_yaml(&[(&id, &text)]).unwrap();
    let report = rendered(&image(), &good(), Some(&rules), Format::Human, &style(60, false));
    insta::assert_snapshot!(report.split_once("  fix").unwrap().1, @r"
      Prose is wrapped where the terminal ends, as all
           other prose is, and more of it here.

           RUN a \
            && b

    PASSED with 1 info: 0 passed, 0 not applicable
    ");
}

#[test]
fn findings_name_the_line_of_the_dockerfile() {
    let image = image();
    let facts = bad();
    let rules = rules();
    let judgements = judge(&rules, &facts, &ImageNames::default());
    let dockerfile = Dockerfile::parse("docker/Dockerfile".to_owned(), super::sarif::DOCKERFILE).unwrap();
    let report = Report { dockerfile: Some(&dockerfile), ..report_of(&image, &facts, Some(&judgements)) };
    for format in [Format::Human, Format::Markdown] {
        let mut collection = Collection::new(&[format]);
        collection.add(std::slice::from_ref(&report));
        let mut out = Vec::new();
        format.write(std::slice::from_ref(&report), &style(80, false), &mut out).unwrap();
        format.finish(&collection, &style(80, false), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("docker/Dockerfile:2") && text.contains("docker/Dockerfile:5"), "{text}");
    }
}

#[test]
fn build_steps_read_like_a_dockerfile() {
    for (step, shown) in [
        ("/bin/sh -c #(nop)  USER ray", "USER ray"),
        ("USER ray", "USER ray"),
        ("/bin/sh -c #(nop) USER ray # not a comment", "USER ray # not a comment"),
    ] {
        let mut image = image();
        image.empty_steps = vec!["USER root".to_owned(), step.to_owned(), "CMD [\"USER\"]".to_owned()];
        let mut facts = bad();
        facts.insert(key::TORCH_NCCL_LINKAGE, Fact::seen(Linkage::Shared, [Site::Config("User".to_owned())]));
        let report = rendered(&image, &facts, Some(&rules()), Format::Human, &style(80, false));
        assert!(report.contains(&format!("configuration, User\n       {shown}\n")), "{report}");
    }
    for (step, shown) in [
        ("/bin/sh -c apt-get  update &&\t apt-get install", "RUN apt-get update && apt-get install"),
        ("|2 A=1 B=2 /bin/bash -c make", "RUN make"),
        ("RUN /bin/bash -o pipefail -c set -x; /bin/sh -c ls # buildkit", "RUN set -x; /bin/sh -c ls"),
        ("COPY a /bin/sh -c b # buildkit", "COPY a /bin/sh -c b"),
        ("bazel build //image", "bazel build //image"),
    ] {
        let mut image = image();
        image.layers[1].history = Some(step.to_owned());
        let report = rendered(&image, &bad(), Some(&rules()), Format::Human, &style(80, false));
        assert!(report.contains(&format!("(sha256:222222222222)\n       {shown}\n")), "{report}");
    }
}
