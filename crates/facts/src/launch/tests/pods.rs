//! Pods of which another part of the file, or another file, says more.

use super::given_by;
use crate::launch::read;

const GPUS: &str = "resources: {limits: {nvidia.com/gpu: 8}}";

#[test]
fn a_part_of_a_pod_says_nothing_of_the_rest() {
    let deployment = |selector: &str, container: &str| {
        let spec = format!("{selector} template: {{spec: {{containers: [{{{container} {GPUS}}}]}}}}");
        given_by("patch.yaml", &format!("kind: Deployment\nspec: {{{spec}}}\n"))
    };
    let unknown = "claims=? gpus=8 locks_memory=? network=? rdma=? shm_bytes=? starter=kubernetes";
    let known = "gpus=8 network=own shm_bytes=67108864 starter=kubernetes";
    for (selector, container, expected) in [
        ("", "", unknown),
        ("", "image: x,", unknown),
        ("selector: {},", "", unknown),
        ("selector: {},", "args: [serve],", unknown),
        ("selector: {},", "command: [serve],", known),
        ("selector: {},", "image: x,", known),
    ] {
        assert_eq!(deployment(selector, container), expected, "{selector} {container}");
    }
    let patch = "kind: Pod\nspec: {hostNetwork: true, hostIPC: true, containers: [{resources: {limits: {nvidia.com/gpu: 8, rdma/hca: 1}, claims: [{name: a}]}}]}\n";
    assert_eq!(
        given_by("p.yaml", patch),
        "claims=a gpus=8 locks_memory=? network=host rdma=rdma/hca starter=kubernetes"
    );
}

#[test]
fn what_changes_other_files_is_refused_and_a_part_is_noted() {
    for (name, text) in [
        ("k/kustomization.yaml", "resources: [a.yaml]\n"),
        ("a.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Component\n"),
        ("a.yaml", "- {op: add, path: /spec/a, value: 1}\n"),
        ("a.sh", "export NCCL_IB_DISABLE=<%= ib %>\nsrun a\n"),
    ] {
        let error = read(name, text).unwrap_err().to_string();
        assert!(error.contains("not rendered") || error.contains("kubectl kustomize"), "{error}");
    }
    assert!(read("a.yaml", "- {op: add, value: 1}\n").is_ok());
    let notes = |text: &str| read("a.yaml", text).unwrap().notes.join("\n");
    let patch = "kind: Pod\nspec: {containers: [{name: a, env: [{name: NCCL_DEBUG, value: INFO}]}]}\n";
    assert!(notes(patch).contains("kubectl kustomize"), "{}", notes(patch));
    assert_eq!(notes(&patch.replace("name: a,", "name: a, image: x,")), "");
    let compose = "include: [a.yaml]\nservices: {a: {image: x, env_file: ../a.env, extends: {service: b}}}\n";
    assert_eq!(notes(compose).matches("with --launch, too").count(), 3, "{}", notes(compose));
}

#[test]
fn a_value_of_a_template_is_unknown() {
    for (name, text) in [
        ("a.yaml", "env: {NCCL_IB_DISABLE: '{{ ib }}', NCCL_DEBUG: INFO}\n"),
        ("a.sh", "export NCCL_IB_DISABLE={{ .Values.ib }} NCCL_DEBUG=INFO\nsrun a\n"),
    ] {
        let settings = read(name, text).unwrap().settings;
        let value = |name: &str| settings.iter().find(|set| set.name == name).unwrap().value.as_deref();
        assert_eq!((value("NCCL_IB_DISABLE"), value("NCCL_DEBUG")), (None, Some("INFO")), "{name}");
    }
}

#[test]
fn a_mounted_volume_that_the_file_lacks_has_an_unknown_size() {
    let pod = format!(
        "kind: Pod\nspec: {{containers: [{{image: x, {GPUS}, volumeMounts: [{{name: v, mountPath: /dev/shm}}]}}]}}\n"
    );
    assert_eq!(given_by("p.yaml", &pod), "gpus=8 network=own shm_bytes=? starter=kubernetes");
}

#[test]
fn a_workflow_has_keys_for_the_pods_of_its_templates() {
    let mount = "volumeMounts: [{name: shm, mountPath: /dev/shm}]";
    let shm = "volumes: [{name: shm, emptyDir: {medium: Memory}}]";
    let workflow = |more: &str, template: &str| {
        given_by("w.yaml", &format!("kind: Workflow\nspec: {{{more} templates: [{{name: a, {template}}}]}}\n"))
    };
    let own = format!("image: x, command: [bash], {GPUS}, {mount}");
    let plain = "gpus=8 network=own starter=kubernetes";
    for (more, template, expected) in [
        (format!("{shm},"), format!("container: {{{own}}}"), plain),
        (String::new(), format!("{shm}, container: {{{own}}}"), plain),
        (String::new(), format!("{shm}, containerSet: {{containers: [{{{own}}}]}}"), plain),
        (
            format!("hostNetwork: true, {shm},"),
            format!("script: {{{own}, source: torchrun --nproc-per-node=4 a.py}}"),
            "gpus=8 network=host ranks=4 runs_torch=true starter=kubernetes",
        ),
        (
            format!("podSpecPatch: 'hostNetwork: true', {shm},"),
            format!("container: {{{own}}}"),
            "claims=? gpus=8 locks_memory=? network=? rdma=? starter=kubernetes",
        ),
    ] {
        assert_eq!(workflow(&more, &template), expected, "{more} {template}");
    }
}

#[test]
fn a_task_may_leave_the_number_of_gpus_to_dstack() {
    for (gpu, expected) in
        [("8", "8"), ("H100:4", "4"), ("H100", "1"), ("24GB..", "1"), ("1..8", "?"), ("H100:2..", "?")]
    {
        let facts = given_by("t.yml", &format!("commands: [a]\nresources: {{gpu: '{gpu}'}}\n"));
        assert!(facts.starts_with(&format!("gpus={expected} ")), "{gpu}: {facts}");
    }
}

#[test]
fn the_script_of_a_workflow_sets_variables() {
    let settings = |command: &str| {
        let script = format!(
            "{{image: x, command: [{command}], env: [{{name: NCCL_DEBUG, value: WARN}}], source: export NCCL_DEBUG=INFO}}"
        );
        let file = read("w.yaml", &format!("kind: Workflow\nspec: {{templates: [{{script: {script}}}]}}\n")).unwrap();
        file.containers[0].settings.iter().filter_map(|set| set.value.clone()).collect::<Vec<_>>()
    };
    assert_eq!(settings("/bin/bash"), ["WARN", "INFO"]);
    assert_eq!(settings("python3"), ["WARN"]);
}

#[test]
fn a_runtime_has_the_rest_of_the_pods_of_a_train_job() {
    let job = |more: &str| {
        format!(
            "kind: TrainJob\nspec: {{trainer: {{numNodes: 2, image: x, resourcesPerNode: {{limits: {{nvidia.com/gpu: 8}}}}}}{more}}}\n"
        )
    };
    let rest = "claims=? gpus=8 locks_memory=? network=? nodes=2 rdma=?";
    assert_eq!(given_by("j.yaml", &job("")), format!("{rest} shm_bytes=? starter=kubernetes"));
    let overrides = |target: &str| {
        format!(
            ", podTemplateOverrides: [{{targetJobs: [{{name: {target}}}], spec: {{volumes: [{{name: shm, emptyDir: {{medium: Memory}}}}], \
             containers: [{{name: node, env: [{{name: NCCL_DEBUG, value: INFO}}], volumeMounts: [{{name: shm, mountPath: /dev/shm}}]}}]}}}}]"
        )
    };
    assert_eq!(given_by("j.yaml", &job(&overrides("node"))), format!("{rest} starter=kubernetes"));
    assert_eq!(
        given_by("j.yaml", &job(&overrides("dataset-initializer"))),
        format!("{rest} shm_bytes=? starter=kubernetes")
    );
    let patches = |target: &str| {
        let own = overrides(target);
        let (_, spec) = own.trim_end_matches("}]").split_once("spec: ").unwrap();
        let job = format!("{{name: {target}, template: {{spec: {{template: {{spec: {spec}}}}}}}}}");
        format!(", runtimePatches: [{{trainingRuntimeSpec: {{template: {{spec: {{replicatedJobs: [{job}]}}}}}}}}]")
    };
    assert_eq!(given_by("j.yaml", &job(&patches("node"))), format!("{rest} starter=kubernetes"));
    assert_eq!(given_by("j.yaml", &job(&patches("other"))), format!("{rest} shm_bytes=? starter=kubernetes"));
    let file = read("j.yaml", &job(&overrides("node"))).unwrap();
    let [container] = &*file.containers else { panic!("{:?}", file.containers) };
    assert_eq!(container.settings[0].name, "NCCL_DEBUG");
}
