use super::*;
use model::ImagePath;
use model::LayerSummary;

const DOCKERFILE: &str = r#"# syntax=docker/dockerfile:1
ARG BASE=debian:12
FROM ${BASE} AS base
ENV NCCL_DEBUG=INFO
RUN apt-get update \
    # and then
    && apt-get install -y python3

FROM golang AS tools
ENV NCCL_P2P_DISABLE=1
RUN make

from base as final
ENV NCCL_IB_HCA=mlx5 \
    # the old one
    NCCL_ALGO="Ring  Tree" \
    NCCL_PROTO=Simple
ENV NCCL_NET_PLUGIN none and more
SHELL ["/bin/bash", "-eo", "pipefail", "-c"]
RUN pip install torch
RUN pip install torch
RUN ["python3", "-c", "import torch"]
RUN <<EOF
set -e
true
EOF
COPY --from=tools --chown=1:1 a b /app/
ADD x.tar /opt/
WORKDIR /app
USER me
LABEL a=b
ENTRYPOINT ["python3"]
CMD ["-V"]
ONBUILD ENV NCCL_SHM_DISABLE=1
"#;

fn dockerfile() -> Dockerfile {
    Dockerfile::parse("docker/Dockerfile".to_owned(), DOCKERFILE).unwrap()
}

fn image(history: &[&str]) -> ImageSummary {
    let layer = |history: &&str| LayerSummary {
        digest: None,
        diff_id: None,
        diff_id_verified: true,
        compression: "none".to_owned(),
        size: 0,
        read: 0,
        unpacked: 0,
        entries: 0,
        cached: false,
        shared: false,
        history: Some((*history).to_owned()),
    };
    ImageSummary {
        reference: String::new(),
        source: String::new(),
        served_by: None,
        manifest: None,
        config: None,
        platform: None,
        layers: history.iter().map(layer).collect(),
        empty_steps: Vec::new(),
        notes: Vec::new(),
    }
}

#[test]
fn settings_have_the_line_that_sets_them_last() {
    let dockerfile = dockerfile();
    for (key, line) in [
        ("Env NCCL_DEBUG", Some(4)),
        ("Env NCCL_IB_HCA", Some(14)),
        ("Env NCCL_ALGO", Some(16)),
        ("Env NCCL_PROTO", Some(17)),
        ("Env NCCL_NET_PLUGIN", Some(18)),
        // Set in a stage that is only copied from, in `ONBUILD`, and not set.
        ("Env NCCL_P2P_DISABLE", None),
        ("Env NCCL_SHM_DISABLE", None),
        ("Env none", None),
        ("Env PATH", None),
        ("WorkingDir", Some(29)),
        ("User", Some(30)),
        ("Labels", Some(31)),
        ("Entrypoint", Some(32)),
        ("Cmd", Some(33)),
        ("Unheard", None),
    ] {
        assert_eq!(dockerfile.line(&Site::Config(key.to_owned()), &image(&[])), line, "{key}");
    }
}

#[test]
fn layers_have_the_line_of_their_instruction() {
    let image = image(&[
        "/bin/sh -c #(nop) ADD file:0f1e2d in / ",
        "RUN /bin/sh -c apt-get update     && apt-get install -y python3 # buildkit",
        "RUN /bin/bash -eo pipefail -c pip install torch # buildkit",
        "RUN |2 A=1 B=x y /bin/bash -eo pipefail -c pip install torch # buildkit",
        "RUN /bin/bash -eo pipefail -c pip install torch # buildkit",
        "RUN python3 -c import torch # buildkit",
        "RUN /bin/bash -eo pipefail -c <<EOF\nset -e\ntrue\nEOF # buildkit",
        "COPY --chown=1:1 a b /app/ # buildkit",
        "/bin/sh -c #(nop) ADD file:1234 in /opt/ ",
        "WORKDIR /app",
        "RUN /bin/sh -c make # buildkit",
    ]);
    let lines: Vec<_> = (0..11)
        .map(|layer| dockerfile().line(&Site::File { layer, path: ImagePath::root(), within: None }, &image))
        .collect();
    let expected = [None, Some(5), None, Some(20), Some(21), Some(22), Some(23), Some(27), Some(28), Some(29), None];
    assert_eq!(lines, expected);
}

#[test]
fn escape_directive_crlf_and_quotes() {
    let text = "# escape=`\r\nFROM a\r\nENV A=`\r\n  1 `\r\n  B='x=1 C=2' D=\"a\\\" E=3\r\n";
    let dockerfile = Dockerfile::parse("Dockerfile".to_owned(), text).unwrap();
    let line = |name: &str| dockerfile.line(&Site::Config(format!("Env {name}")), &image(&[]));
    assert_eq!([line("A"), line("B"), line("C"), line("D"), line("E")], [Some(3), Some(5), None, Some(5), Some(5)]);
}

#[test]
fn syntax_errors_name_their_line() {
    let error = Dockerfile::parse("Dockerfile".to_owned(), "FROM a\nTRUN x\n").unwrap_err();
    assert_eq!(error, "unknown instruction 'TRUN' at line 2 column 1");
    assert!(Dockerfile::parse("Dockerfile".to_owned(), "").is_err());
    assert!(Dockerfile::parse("Dockerfile".to_owned(), &"FROM a AS a\n".repeat(2)).is_err());
}
