use serde_json::Value as Json;

use super::*;
use crate::json::schemas;

fn json(facts: &Facts, rules: Option<&RuleSet>) -> Json {
    let text = rendered(&image(), facts, rules, Format::Json, &style(80, false));
    assert_eq!(text.find('\n'), Some(text.len() - 1), "not one line: {text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_shape_of_a_report() {
    let rules = rules();
    let text = rendered(&image(), &bad(), Some(&rules), Format::Json, &style(80, false));
    assert!(text.starts_with(r#"{"schema":"ncclcheck/2","tool":{"name":"ncclcheck","version":""#));
    let report = json(&bad(), Some(&rules));
    assert_eq!(report["schema"], "ncclcheck/2");
    assert_eq!(report["counts"]["error"], 1);
    assert_eq!(report["asked"]["fail_on"], "error");
    assert_eq!(report["verdict"], "fail");
    insta::assert_snapshot!(report["image"]["layers"][2], @r#"{"cached":false,"compression":"gzip","diff_id":"sha256:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff","diff_id_verified":true,"digest":"sha256:3333333333333333333333333333333333333333333333333333333333333333","entries":1200,"history":"COPY train.py /workspace/ # buildkit","read":512,"shared":false,"size":512,"unpacked":1280}"#);
    insta::assert_snapshot!(report["facts"]["torch.cuda.version"], @r#"{"at":[{"digest":"sha256:2222222222222222222222222222222222222222222222222222222222222222","layer":1,"path":"/usr/local/lib/python3.12/dist-packages/torch/lib/libtorch_cuda.so","within":"DT_NEEDED"}],"state":"seen","value":"12.8"}"#);
    insta::assert_snapshot!(report["facts"]["image.env"], @r#"{"at":[{"config":"Env NCCL_DEBUG"}],"state":"seen","value":{"NCCL_DEBUG":"INFO"}}"#);
    insta::assert_snapshot!(report["facts"]["rdma.verbs"], @r#"{"state":"absent"}"#);
    insta::assert_snapshot!(json(&hidden(), None)["facts"]["nccl.loaded.path"], @r#"{"gap":"the file system ends in the middle of layer 2; check the whole image","state":"unknown"}"#);
    insta::assert_snapshot!(report["judgements"][0], @r#"{"at":[{"config":"Env NCCL_DEBUG","step":"ENV NCCL_DEBUG=INFO"}],"fingerprint":"2500802ca19ee17bad36ccd7c86bdfe574c3d236463cb28dcbe12ced15db96d0","fix":"Leave NCCL_DEBUG to the job that needs it, or write only what matters:\nENV NCCL_DEBUG=WARN","message":"NCCL_DEBUG=INFO is part of the image","outcome":"fail","owner":"image","references":["https://example.org"],"rule":"env/debug-on","severity":"warning","title":"NCCL's log is on","why":"Without it the ranks of a job talk over TCP sockets, and a step takes many times as long as it should on the same hosts."}"#);
    insta::assert_snapshot!(report["judgements"][2], @r#"{"at":[],"outcome":"not-applicable","owner":"image","rule":"rdma/no-provider","severity":"error","title":"no RDMA provider in user space"}"#);
    insta::assert_snapshot!(json(&hidden(), Some(&rules))["judgements"][1], @r#"{"at":[],"fix":"RUN apt-get update && apt-get install -y --no-install-recommends libnccl2=2.27.5-1+cuda12.9 \\\n && rm -rf /var/lib/apt/lists/*","gaps":[{"help":"check the whole image","why":"the file system ends in the middle of layer 2"}],"message":"the file system ends in the middle of layer 2; check the whole image","outcome":"unknown","owner":"image","references":["https://example.org"],"rule":"nccl/missing-library","severity":"error","title":"the NCCL that torch needs is missing","why":"Without it the ranks of a job talk over TCP sockets, and a step takes many times as long as it should on the same hosts."}"#);
}

#[test]
fn an_inspection_judges_nothing() {
    let report = json(&good(), None);
    assert!(report.get("verdict").is_none() && report.get("judgements").is_none());
}

#[test]
fn unknown_values_of_an_image_are_null() {
    let mut image = image();
    image.manifest = None;
    image.platform = None;
    image.layers[1].digest = None;
    let text = rendered(&image, &good(), None, Format::Json, &style(80, false));
    let report: Json = serde_json::from_str(&text).unwrap();
    assert_eq!((&report["image"]["manifest"], &report["image"]["platform"]), (&Json::Null, &Json::Null));
    let site = &report["facts"]["nccl.loaded.path"]["at"][0];
    assert_eq!(site["digest"], report["image"]["layers"][1]["diff_id"]);
}

#[test]
fn the_schemas_in_the_repository_are_these() {
    for (name, schema) in schemas() {
        let path = format!("{}/schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("NCCLCHECK_BLESS").is_some_and(|value| value == "1") {
            std::fs::write(&path, &schema).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == schema, "{path} is out of date: NCCLCHECK_BLESS=1 cargo test --workspace --lib schema");
    }
}
