use super::*;
use facts::machine::Host;
use judge::rules::Judgement;

const HOSTS: [&str; 3] = [
    "name=new,driver=580.95.05,gpu=h100x8,fabric=nvswitch",
    "name=old,driver=470.57.02,gpu=a100x8",
    "driver=999.1,gpu=sm_90",
];

fn rules() -> RuleSet {
    let documents = [
        rule(
            "host/driver-too-old",
            "error",
            "the host's driver is too old",
            "Update the driver.",
            "applies: has(host.driver)\ncheck: \"version(host.driver) >= version('525.60.13')\"\n\
             message: \"driver {host.driver} is too old\"",
        ),
        rule(
            "host/minor-version",
            "info",
            "the host's driver is of an older release",
            "Update the driver.",
            "applies: has(host.driver)\ncheck: \"version(host.cuda) >= version('12.8')\"\nmessage: \"it brings CUDA {host.cuda}\"",
        ),
        rule("rdma/no-provider", "error", "no provider", "Install one.", "check: 'true'\nmessage: none"),
    ];
    let documents: Vec<_> = documents.iter().map(|(id, text)| (&**id, &**text)).collect();
    RuleSet::from_yaml(&documents).unwrap()
}

fn on(hosts: &[&str], format: Format, width: usize) -> String {
    let image = image();
    let rules = rules();
    let hosts: Vec<Host> = hosts.iter().map(|host| host.parse().unwrap()).collect();
    let facts: Vec<Facts> = hosts.iter().map(|host| good().on(host)).collect();
    let judgements: Vec<Vec<Judgement<'_>>> =
        facts.iter().map(|facts| judge(&rules, facts, &ImageNames::default())).collect();
    let reports: Vec<_> = (hosts.iter().zip(&facts).zip(&judgements))
        .map(|((host, facts), judgements)| Report {
            image: &image,
            host: Some(host),
            facts,
            judgements: Some(judgements),
            fail_on: FailOn::Error,
            fail_for: &Owner::ALL,
            notices: &[],
            probe: None,
            rules: None,
            run: None,
            dockerfile: None,
        })
        .collect();
    let mut out = Vec::new();
    format.write(&reports, &style(width, false), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn several_hosts_are_a_table() {
    insta::assert_snapshot!(on(&HOSTS, Format::Human, 80), @"
    FAIL  torch:2.9.0 (linux/amd64): 3 layers, 3 rules, 3 hosts

      source      docker://registry.example:5000/ml/torch:2.9.0
      manifest    sha256:aaaaaaaaaaaa
      layers      3, 3.6 GiB (9.1 GiB unpacked)
      torch       2.9.0+cu128, built for CUDA 12.8
      NCCL        2.27.5
        /usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2
      linkage     shared, DT_RUNPATH $ORIGIN/../../nvidia/nccl/lib
      libibverbs  /usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.39.0
      providers   efa, mlx5

    hosts
      1  PASS                 new
      2  FAIL                 old
      3  PASS with 1 unknown  driver=999.1,gpu=sm_90

      host                 1        2        3
      host/driver-too-old  pass     error    pass
      host/minor-version   pass     info     unknown

    error[host/driver-too-old]: driver 470.57.02 is too old
      on   old
      of   image
      why  Without it the ranks of a job talk over TCP sockets, and a step takes
           many times as long as it should on the same hosts.
      fix  Update the driver.

    info[host/minor-version]: it brings CUDA 11.4
      on   old
      of   image
      why  Without it the ranks of a job talk over TCP sockets, and a step takes
           many times as long as it should on the same hosts.
      fix  Update the driver.

    unknown: the CUDA release of driver 999.1 is unknown
      help  add cuda=X.Y to the host, as nvidia-smi shows it there
      on    driver=999.1,gpu=sm_90
      not ruled out:
      host/minor-version  the host's driver is of an older release

    FAILED: 3 hosts: 1 failed, 0 incomplete, 2 passed
    ");
}

#[test]
fn errors_of_one_host_come_before_notes_on_all() {
    let report = on(&["driver=470.57.02", "driver=535.104.05"], Format::Human, 80);
    let [error, info] =
        ["error[host/driver-too-old]", "info[host/minor-version]"].map(|rule| report.find(rule).unwrap());
    assert!(error < info, "{report}");
}

#[test]
fn one_host_is_named() {
    insta::assert_snapshot!(on(&HOSTS[..1], Format::Human, 80), @"
    PASS  torch:2.9.0 (linux/amd64): 3 layers, 3 rules, for new

      source      docker://registry.example:5000/ml/torch:2.9.0
      manifest    sha256:aaaaaaaaaaaa
      layers      3, 3.6 GiB (9.1 GiB unpacked)
      torch       2.9.0+cu128, built for CUDA 12.8
      NCCL        2.27.5
        /usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2
      linkage     shared, DT_RUNPATH $ORIGIN/../../nvidia/nccl/lib
      libibverbs  /usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.39.0
      providers   efa, mlx5

    PASSED: 0 errors, 0 warnings, 0 unknown, 3 passed, 0 not applicable
    ");
}

#[test]
fn json_has_a_report_for_each_host() {
    let text = on(&HOSTS, Format::Json, 80);
    let reports: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let verdicts: Vec<_> = reports.iter().map(|report| report["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["pass", "fail", "pass"]);
    insta::assert_snapshot!(reports[0]["host"], @r#"{"cuda":null,"driver":"580.95.05","fabric":"nvswitch","gpu":"h100","gpu_arch":"sm_90","gpu_count":8,"kernel":null,"name":"new","rdma":null}"#);
    assert_eq!(reports[2]["host"]["driver"], "999.1");
    assert_eq!(reports[1]["facts"]["host.gpu_arch"]["value"], "sm_80");
}

#[test]
fn hosts_share_one_statement_with_the_worst_verdict() {
    let text = on(&HOSTS, Format::InToto, 80);
    assert_eq!(text.lines().count(), 1, "{text}");
    let statement: serde_json::Value = serde_json::from_str(&text).unwrap();
    let predicate = &statement["predicate"];
    assert_eq!(predicate["verdict"], "fail");
    let list = |key: &str| predicate[key].as_array().unwrap().clone();
    let verdicts: Vec<_> = list("hosts").iter().map(|host| format!("{} {}", host["name"], host["verdict"])).collect();
    assert_eq!(verdicts, ["\"new\" \"pass\"", "\"old\" \"fail\"", "\"driver=999.1,gpu=sm_90\" \"pass\""]);
    let findings: Vec<_> =
        list("findings").iter().map(|finding| format!("{} {}", finding["rule"], finding["hosts"])).collect();
    let newest = "\"host/minor-version\" [\"driver=999.1,gpu=sm_90\"]";
    assert_eq!(findings, ["\"host/driver-too-old\" [\"old\"]", "\"host/minor-version\" [\"old\"]", newest]);
}
