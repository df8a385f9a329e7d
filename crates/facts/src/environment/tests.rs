use model::{ImageConfig, NcclStrings};

use super::super::key::Definition;
use super::super::{FactInputs, Facts};
use super::name::Family;
use super::*;
use crate::launch::Setting;
use crate::tests::synthetic::{rootfs, text_or_link};
use model::{Gap, Site, Value, Version};

mod unread;

fn names(names: &[&str]) -> std::collections::BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn copy() -> NcclStrings {
    NcclStrings {
        version: "2.27.5".to_owned(),
        variables: names(&[
            "NCCL_IB_HCA",
            "NCCL_IB_DISABLE",
            "NCCL_DEBUG",
            "NCCL_NCHANNELS_PER_NET_PEER",
            "NCCL_INIT",
            "NCCL_VENDOR_X",
        ]),
        joined: names(&["NCCL_NET_PLUGIN", "NCCL_NOT_A_NAME"]),
        ..NcclStrings::default()
    }
}

#[test]
fn names_are_looked_up_in_the_copy_first() {
    let copy = copy();
    let readers = Readers {
        nccl: Some(&copy),
        nccl_version: Version::parse("2.27.5"),
        torch_version: Version::parse("2.9.0+cu128"),
        backend: NcclBackend::Default,
    };
    let meant = |name: &str| NameState::Misspelt(name.to_owned());
    for (name, expected) in [
        ("NCCL_IB_HCA", NameState::Known),
        // A fork's own variable, which no table has.
        ("NCCL_VENDOR_X", NameState::Known),
        ("NCCL_NET_PLUGIN", NameState::Known),
        ("NCCL_NOT_A_NAME", NameState::Unknown(None)),
        // The name of a constant, not of a variable.
        ("NCCL_INIT", NameState::Unknown(None)),
        ("NCCL_IB_HAC", meant("NCCL_IB_HCA")),
        ("NCCL_IB_ENABLE", NameState::Unknown(Some("NCCL_IB_DISABLE (inverted)".to_owned()))),
        ("NCCL_NCHANNELS", NameState::Unknown(Some("NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS".to_owned()))),
        ("NCCL_CUDA_PATH", NameState::Removed("2.20.5".to_owned())),
        ("NCCL_GIN_PLUGIN", NameState::NotYet("2.29.7".to_owned())),
        // The table has it for this release but this copy does not: which of them is right is not known.
        ("NCCL_ALGO", NameState::Unchecked),
        ("NCCL_VERSION", NameState::Foreign),
        ("NCCL_FASTRAK_IFNAME", NameState::Foreign),
        ("NCCL_ASYNC_ERROR_HANDLING", NameState::Old("TORCH_NCCL_ASYNC_ERROR_HANDLING".to_owned())),
        ("TORCH_NCCL_BLOCKING_WAIT", NameState::Known),
        ("TORCH_NCCL_BLOKING_WAIT", meant("TORCH_NCCL_BLOCKING_WAIT")),
        ("TORCH_FR_BUFFER_SIZE", NameState::Known),
        ("TORCH_FR_BUFER_SIZE", meant("TORCH_FR_BUFFER_SIZE")),
        ("TORCH_FR_DUMP_ON_TIMEOUT", NameState::NotYet("2.15".to_owned())),
        ("TORCH_NCCL_TRACE_BUFFER_SIZE", NameState::Old("TORCH_FR_BUFFER_SIZE".to_owned())),
        ("TORCH_NCCL_DUMP_ON_TIMEOUT", NameState::Known),
        ("TORCH_INCLUDE_STACK_TRACE", NameState::NotYet("2.10".to_owned())),
        ("TORCH_NCCL_TEARDOWN_ON_TIMEOUT", NameState::NotYet("2.15".to_owned())),
        ("TORCH_NCCL_SOMETHING_ELSE", NameState::Unchecked),
        ("NVIDIA_VISIBLE_DEVICE", meant("NVIDIA_VISIBLE_DEVICES")),
        ("CUDA_SOMETHING", NameState::Unchecked),
    ] {
        assert_eq!(readers.look_up(name).unwrap().state, expected, "{name}");
    }
    assert!(readers.look_up("PATH").is_none());
    let torch = |version| Readers {
        torch_version: Version::parse(version),
        nccl: None,
        nccl_version: None,
        backend: NcclBackend::Default,
    };
    let old = torch("2.1.2");
    assert_eq!(old.look_up("NCCL_BLOCKING_WAIT").unwrap().state, NameState::Known);
    assert_eq!(old.look_up("TORCH_NCCL_BLOCKING_WAIT").unwrap().state, NameState::NotYet("2.2".to_owned()));
    assert_eq!(old.look_up("NCCL_IB_HCA").unwrap().state, NameState::Unchecked);
    assert_eq!(Family::of("FI_PROVIDER").unwrap().name(), "libfabric");

    let with = |backend, readers| Readers { backend, ..readers };
    for (readers, heartbeat, blocking) in [
        (torch("2.14.1"), NameState::Known, NameState::Known),
        (torch("2.15.0+cu132"), NameState::Unselected, NameState::Known),
        (with(NcclBackend::Legacy, torch("2.15.0")), NameState::Known, NameState::Known),
        (with(NcclBackend::Unknown, torch("2.15.0")), NameState::Undecided, NameState::Known),
    ] {
        let state = |name: &str| readers.look_up(name).unwrap().state;
        assert_eq!(state("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"), heartbeat);
        assert_eq!(state("TORCH_NCCL_BLOCKING_WAIT"), blocking);
    }
}

/// Facts of an image of text files, with an environment and launch settings.
fn facts_of(files: &[(&str, &str)], environment: &[(&str, &str)], launch: &[Setting]) -> Facts {
    let rootfs = rootfs(files.iter().map(|(path, text)| text_or_link(path, text)));
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let config = ImageConfig { environment, user: "trainer".to_owned(), ..ImageConfig::default() };
    Facts::collect(&FactInputs { rootfs: &rootfs, config: Some(&config), launch })
}

fn listed(facts: &Facts, key: &Definition) -> Vec<String> {
    match facts.view(key) {
        Fact::Seen { value: Value::List(values), .. } => values.iter().map(ToString::to_string).collect(),
        Fact::Absent => Vec::new(),
        other => panic!("{}: {other:?}", key.name),
    }
}

fn places(facts: &Facts, key: &Definition) -> Vec<String> {
    facts.view(key).sites().iter().map(ToString::to_string).collect()
}

#[test]
fn every_place_is_read() {
    let launch = [Setting {
        name: "NCCL_PROTO".to_owned(),
        value: None,
        site: Site::Launch { file: "job.sh".to_owned(), line: Some(3), variable: "NCCL_PROTO".to_owned() },
    }];
    let facts = facts_of(
        &[
            ("etc/environment", "NCCL_ALGO=\"Ring\"\nSECRET=1\n"),
            ("etc/profile.d/nccl.sh", "# x\nexport NCCL_NTHREADS=$(nproc)\nNCCL_UNEXPORTED=1\n"),
            ("opt/conda/etc/conda/activate.d/env.sh", "export FI_PROVIDER=efa"),
            ("etc/nccl.conf", "NCCL_BUFFSIZE=4M\n"),
        ],
        &[("NCCL_DEBUG", "WARN"), ("TOKEN", "secret")],
        &launch,
    );
    assert_eq!(
        places(&facts, &key::ENV_VARIABLES),
        [
            "job.sh, line 3 (NCCL_PROTO)",
            "image configuration, Env NCCL_DEBUG",
            "/etc/environment (line 1)",
            "/etc/profile.d/nccl.sh (line 2)",
            "/opt/conda/etc/conda/activate.d/env.sh (line 1)",
            "/etc/nccl.conf (line 1)",
        ]
    );
    assert!(!format!("{facts:?}").contains("secret"));
    assert_eq!(listed(&facts, &key::LAUNCH_VARIABLES), ["NCCL_PROTO"]);
}

#[test]
fn the_backend_decides_which_variables_of_torch_are_read() {
    let removed = |switch: &[(&str, &str)], conf: &str, launch: &[Setting]| {
        let facts = facts_of(
            &[
                ("usr/bin/python3", "-> python3.11"),
                ("usr/bin/python3.11", "elf"),
                ("usr/lib/python3/dist-packages/torch/version.py", "__version__ = '2.15.0+cu132'\ncuda = '13.2'\n"),
                ("etc/nccl.conf", conf),
            ],
            &[&[("PATH", "/usr/bin"), ("TORCH_NCCL_DESYNC_DEBUG", "1")][..], switch].concat(),
            launch,
        );
        match facts.view(&key::ENV_REMOVED) {
            Fact::Seen { value, .. } => value.to_string(),
            Fact::Absent => "absent".to_owned(),
            Fact::Unknown(gap) => format!("unknown: {}", gap.why),
        }
    };
    let switch = "TORCH_DIST_USE_NCCL2";
    let default = removed(&[], "", &[]);
    assert!(default.starts_with("TORCH_NCCL_DESYNC_DEBUG (its default backend nccl2 does not read it"), "{default}");
    assert_eq!(removed(&[(switch, "0")], "", &[]), "absent");
    // Python reads the environment, and not NCCL's file.
    assert_eq!(removed(&[], "TORCH_DIST_USE_NCCL2=0\n", &[]), default);
    let site = Site::Launch { file: "job.sh".to_owned(), line: Some(3), variable: switch.to_owned() };
    let computed = [Setting { name: switch.to_owned(), value: None, site }];
    assert_eq!(
        removed(&[], "", &computed),
        "unknown: job.sh, line 3 (TORCH_DIST_USE_NCCL2) computes TORCH_DIST_USE_NCCL2"
    );
}

#[test]
fn values_that_cost_and_contradictions() {
    let launch = |(name, value): (&str, &str)| Setting {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        site: Site::Launch { file: "job.sh".to_owned(), line: Some(3), variable: name.to_owned() },
    };
    let facts = facts_of(
        &[("etc/nccl.conf", "NCCL_IB_DISABLE=1\n")],
        &[
            ("NCCL_IB_HCA", "mlx5_0"),
            ("NCCL_P2P_DISABLE", "1"),
            ("TORCH_NCCL_BLOCKING_WAIT", "1"),
            ("TORCH_NCCL_ENABLE_MONITORING", "0"),
            // Other rules report these.
            ("CUDA_LAUNCH_BLOCKING", "1"),
            ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"),
            ("TORCH_NCCL_NAN_CHECK", "on"),
            ("NCCL_SOCKET_NTHREADS", "16"),
            ("NCCL_NSOCKS_PERTHREAD", "8"),
        ],
        // The second one has a cost only in an image.
        &[("TORCH_NCCL_RETHROW_CUDA_ERRORS", "0"), ("TORCH_DIST_NAN_CHECK", "1")].map(launch),
    );
    // NCCL is unknown here, so its names are not judged; the others are.
    assert_eq!(
        listed(&facts, &key::ENV_COSTLY),
        [
            "TORCH_NCCL_RETHROW_CUDA_ERRORS=0 (CUDA errors go unnoticed)",
            "TORCH_NCCL_BLOCKING_WAIT=1 (the CPU waits for every collective)",
            "TORCH_NCCL_ENABLE_MONITORING=0 (a stuck watchdog goes unnoticed)",
        ]
    );
    assert_eq!(listed(&facts, &key::ENV_BAD_VALUES), [""; 0]);
    assert_eq!(
        listed(&facts, &key::ENV_REFUSED_VALUES),
        ["TORCH_NCCL_NAN_CHECK=on (PyTorch stops with `Invalid value for environment variable`)"]
    );
    assert_eq!(
        listed(&facts, &key::ENV_CONTRADICTIONS),
        [
            "NCCL_IB_HCA has no effect: NCCL_IB_DISABLE switches InfiniBand and RoCE off",
            "16 threads with 8 sockets each are more than the 64 sockets that NCCL allows",
        ]
    );
}

#[test]
fn configuration_files_are_read_as_nccl_does() {
    const PASSWD: &str = "root:x:0:0::/root:/bin/sh\ntrainer:x:1000:1000::/home/trainer:/bin/sh\n";
    let files = [
        ("etc/passwd", PASSWD),
        ("home/trainer/.nccl.conf", "NCCL_DEBUG=WARN\nNCCL_ALGO = Ring\n\nNCCL_IB_HCA\n# NCCL_NET=IB\n"),
        ("root/.nccl.conf", "NCCL_NET=Socket\n"),
        ("etc/nccl.conf", "NCCL_DEBUG=INFO\nNCCL_SOCKET_IFNAME=\"eth0\"\n"),
        ("etc/site-nccl.conf", ""),
    ];
    let facts = facts_of(&files, &[], &[]);
    assert_eq!(listed(&facts, &key::NCCL_CONFIG_FILES), ["/home/trainer/.nccl.conf", "/etc/nccl.conf"]);
    assert_eq!(
        listed(&facts, &key::NCCL_CONFIG_PROBLEMS),
        [
            "/home/trainer/.nccl.conf (line 2): it sets a variable named 'NCCL_ALGO ', spaces included, which nothing reads",
            "/home/trainer/.nccl.conf (line 4): without '=' the line is ignored",
            "/etc/nccl.conf (line 1): NCCL_DEBUG is already set above, and the first setting counts",
            "/etc/nccl.conf (line 2): the value of NCCL_SOCKET_IFNAME is taken literally, with its quotes and spaces",
        ]
    );
    let named = facts_of(&files, &[("NCCL_CONF_FILE", "/etc/site-nccl.conf")], &[]);
    assert_eq!(listed(&named, &key::NCCL_CONFIG_FILES), ["/etc/site-nccl.conf", "/etc/nccl.conf"]);
    let missing = facts_of(&files, &[("NCCL_CONF_FILE", "/mnt/nccl.conf")], &[]);
    assert_eq!(missing.get(key::NCCL_CONFIG_MISSING).value().map(String::as_str), Some("/mnt/nccl.conf"));
}

#[test]
fn the_home_directory_is_that_of_the_user_that_runs() {
    let files = [
        ("etc/passwd", "root:x:0:0::/root:/bin/sh\ntrainer:x:1000:1000::/home/trainer:/bin/sh\n"),
        ("home/trainer/.nccl.conf", "NCCL_DEBUG=WARN\n"),
        ("root/.nccl.conf", "NCCL_DEBUG=INFO\n"),
        (".nccl.conf", "NCCL_DEBUG=TRACE\n"),
    ];
    let rootfs = rootfs(files.iter().map(|(path, text)| text_or_link(path, text)));
    let read = |user: Option<&str>, unknown: Option<Gap>| {
        let mut config = ImageConfig { user: "trainer".to_owned(), ..ImageConfig::default() };
        config.start.user = user.map(|name| Ok(model::StartUser::named(name)));
        config.unknown.user = unknown;
        let facts = Facts::collect(&FactInputs { rootfs: &rootfs, config: Some(&config), launch: &[] });
        match facts.view(&key::NCCL_CONFIG_FILES) {
            Fact::Unknown(gap) => gap.why.clone(),
            _ => listed(&facts, &key::NCCL_CONFIG_FILES).join(" "),
        }
    };
    assert_eq!(read(None, None), "/home/trainer/.nccl.conf");
    assert_eq!(read(Some("0"), None), "/root/.nccl.conf");
    // Runtimes set HOME=/ for a user that the passwd file does not list.
    assert_eq!(read(Some("1234"), None), "/.nccl.conf");
    assert_eq!(
        read(None, Some(Gap::new("why"))),
        "NCCL reads /root/.nccl.conf if the job's user is its owner, and that user is unknown: why"
    );
}

#[test]
fn values_are_judged_by_what_nccl_would_see() {
    let launch = |value: Option<&str>| Setting {
        name: "NCCL_NET".to_owned(),
        value: value.map(ToOwned::to_owned),
        site: Site::Launch { file: "job.sh".to_owned(), line: Some(3), variable: "NCCL_NET".to_owned() },
    };
    let conf = [("etc/nccl.conf", "NCCL_NET=OFI\n")];
    let none = |value: &str| {
        format!("NCCL_NET={value} (NCCL has only IB and Socket, and opens no network plugin in this image)")
    };
    for (environment, launch, expected) in [
        (&[][..], vec![], vec![none("OFI")]),
        (&[("NCCL_NET", "Socket")], vec![], vec![]),
        (&[("NCCL_NET", "Socket")], vec![launch(Some("gIB"))], vec![none("gIB")]),
        (&[("NCCL_NET", "gIB")], vec![launch(None)], vec![]),
        (
            &[("NCCL_NET", "")],
            vec![],
            vec!["NCCL_NET= (no network has an empty name; leave the variable unset)".to_owned()],
        ),
        (
            &[("NCCL_NET", "ib"), ("NCCL_IB_DISABLE", "1")],
            vec![],
            vec!["NCCL_NET=ib (NCCL_IB_DISABLE switches this network off)".to_owned()],
        ),
        (&[("NCCL_NET", "IB"), ("NCCL_IB_DISABLE", "0")], vec![], vec![]),
    ] {
        let facts = facts_of(&conf, environment, &launch);
        assert_eq!(listed(&facts, &key::ENV_REFUSED_VALUES), expected, "{environment:?} {launch:?}");
    }
}

#[test]
fn a_variable_of_a_plugin_needs_the_plugin() {
    let environment = [("NCCL_FASTRAK_IFNAME", "eth1"), ("OFI_NCCL_PROTOCOL", "RDMA"), ("NCCL_VERSION", "2.27.5")];
    let facts = facts_of(&[], &environment, &[]);
    assert_eq!(
        listed(&facts, &key::ENV_PLUGIN_MISSING),
        ["NCCL_FASTRAK_IFNAME (Google's FasTrak plugin)", "OFI_NCCL_PROTOCOL (AWS's OFI plugin)"]
    );
    let facts = facts_of(&[("opt/ofi/lib/libnccl-net-ofi.so", "")], &environment, &[]);
    assert_eq!(listed(&facts, &key::ENV_PLUGIN_MISSING), [""; 0]);
}

#[test]
fn the_launch_may_name_nccls_file() {
    let launch = |value: Option<&str>| Setting {
        name: "NCCL_CONF_FILE".to_owned(),
        value: value.map(ToOwned::to_owned),
        site: Site::Launch { file: "job.sh".to_owned(), line: Some(2), variable: "NCCL_CONF_FILE".to_owned() },
    };
    let files = [("opt/a.conf", "NCCL_SOCKET_IFNAME=lo\n"), ("opt/b.conf", "NCCL_SOCKET_IFNAME=eth0\n")];
    let environment = [("NCCL_CONF_FILE", "/opt/b.conf")];
    let facts = facts_of(&files, &environment, &[launch(Some("/opt/a.conf"))]);
    assert_eq!(listed(&facts, &key::NCCL_CONFIG_FILES), ["/opt/a.conf"]);
    assert_eq!(places(&facts, &key::ENV_LOOPBACK_ONLY), ["/opt/a.conf (line 1)"]);
    let facts = facts_of(&files, &environment, &[launch(None)]);
    assert!(matches!(facts.get(key::ENV_LOOPBACK_ONLY), Fact::Unknown(_)));
}

#[test]
fn the_variables_of_a_process_are_effective() {
    let facts = facts_of(&[], &[("CUDA_VISIBLE_DEVICES", ""), ("RANK", "0"), ("CUDA_VERSION", "12.8")], &[]);
    let Fact::Seen { value, .. } = facts.get(key::ENV_EFFECTIVE) else { panic!("nothing is unknown") };
    assert_eq!(value.keys().collect::<Vec<_>>(), ["CUDA_VISIBLE_DEVICES", "RANK"]);
}

#[test]
fn a_network_may_be_mounted() {
    let environment = [("NCCL_NET", "gIB"), ("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64:/usr/local/gib/lib64")];
    let facts = facts_of(&[], &environment, &[]);
    let Fact::Unknown(gap) = facts.get(key::ENV_REFUSED_VALUES) else { panic!("a mounted plugin is not known") };
    assert!(gap.to_string().contains("/usr/local/gib/lib64"), "{gap}");
}

#[test]
fn values_of_pytorch_stop_the_job() {
    let environment = [("TORCH_DISTRIBUTED_DEBUG", "1"), ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "7")];
    let facts = facts_of(&[], &environment, &[]);
    assert_eq!(
        listed(&facts, &key::ENV_REFUSED_VALUES),
        ["TORCH_DISTRIBUTED_DEBUG=1 (1 is not one of OFF, INFO, DETAIL)"]
    );
    assert_eq!(listed(&facts, &key::ENV_BAD_VALUES), ["TORCH_NCCL_ASYNC_ERROR_HANDLING=7 (7 is not between 0 and 3)"]);
}

#[test]
fn lists_of_interfaces_may_leave_only_loopback() {
    let conf = [("etc/nccl.conf", "NCCL_SOCKET_IFNAME=lo\n")];
    let facts = facts_of(&conf, &[], &[]);
    assert_eq!(listed(&facts, &key::ENV_LOOPBACK_ONLY), ["NCCL_SOCKET_IFNAME=lo"]);
    assert_eq!(places(&facts, &key::ENV_LOOPBACK_ONLY), ["/etc/nccl.conf (line 1)"]);
    let facts = facts_of(&conf, &[("NCCL_SOCKET_IFNAME", "^docker")], &[]);
    assert_eq!(listed(&facts, &key::ENV_LOOPBACK_ONLY), [""; 0]);
    assert_eq!(listed(&facts, &key::ENV_LOOPBACK_ADMITTED), ["NCCL_SOCKET_IFNAME=^docker"]);
}

#[test]
fn topology_files_are_in_the_image_or_not() {
    let files = [("opt/topo.xml", "<system/>")];
    let missing = |environment: &[(&str, &str)], launch: &[Setting]| {
        listed(&facts_of(&files, environment, launch), &key::ENV_TOPOLOGY_FILES_MISSING)
    };
    assert_eq!(missing(&[("NCCL_TOPO_FILE", "/opt/topo.xml"), ("NCCL_GRAPH_FILE", "")], &[]), [""; 0]);
    assert_eq!(missing(&[("NCCL_TOPO_FILE", "opt/topo.xml")], &[]), [""; 0]);
    assert_eq!(
        missing(&[("NCCL_TOPO_FILE", "/mnt/topo.xml"), ("NCCL_GRAPH_FILE", "graph.xml")], &[]),
        ["NCCL_TOPO_FILE=/mnt/topo.xml"]
    );
    let facts = facts_of(&files, &[("NCCL_GRAPH_FILE", "graph.xml")], &[]);
    assert_eq!(
        listed(&facts, &key::ENV_REFUSED_VALUES),
        ["NCCL_GRAPH_FILE=graph.xml (the image does not contain the file)"]
    );
    let site = Site::Launch { file: "job.sh".to_owned(), line: Some(3), variable: "NCCL_TOPO_FILE".to_owned() };
    let given = Setting { name: "NCCL_TOPO_FILE".to_owned(), value: Some("/mnt/topo.xml".to_owned()), site };
    assert_eq!(missing(&[], &[given]), [""; 0]);
}

/// Each setting becomes a record, and names are compared with all known ones.
#[test]
fn more_settings_than_are_read_leave_the_environment_unknown() {
    let lines =
        |count: usize| (0..count).fold(String::new(), |text, number| text + "NCCL_X" + &number.to_string() + "=1\n");
    let effective = |text: &str| {
        let facts = facts_of(&[("etc/nccl.conf", text)], &[("NCCL_DEBUG", "INFO")], &[]);
        let known = facts.get(key::ENV_VARIABLES).value().map_or(0, Vec::len);
        (known, matches!(facts.get(key::ENV_EFFECTIVE), Fact::Unknown(_)))
    };
    assert_eq!(effective(&lines(9_999)), (10_000, false));
    assert_eq!(effective(&lines(10_000)), (10_000, true));
    assert_eq!(effective(&lines(50_000)), (10_000, true));
}

#[test]
fn bootstrap_over_the_network_has_its_own_interfaces() {
    let conflict = |environment: &[(&str, &str)]| listed(&facts_of(&[], environment, &[]), &key::ENV_CONTRADICTIONS);
    assert_eq!(
        conflict(&[("NCCL_OOB_NET_IFNAME", "mlx5_0")]),
        ["NCCL_OOB_NET_IFNAME has no effect without NCCL_OOB_NET_ENABLE=1: NCCL_SOCKET_IFNAME selects the interface"]
    );
    assert_eq!(conflict(&[("NCCL_OOB_NET_IFNAME", "mlx5_0"), ("NCCL_OOB_NET_ENABLE", "0")]).len(), 1);
    assert_eq!(conflict(&[("NCCL_OOB_NET_IFNAME", "mlx5_0"), ("NCCL_OOB_NET_ENABLE", "1")]), [""; 0]);
    assert_eq!(conflict(&[("NCCL_OOB_NET_ENABLE", "1")]), [""; 0]);
    let refused = |list: &str, switch: &str, version: &str| {
        let setting = |name: &str, value: &str| Setting {
            name: name.to_owned(),
            value: Some(value.to_owned()),
            site: Site::Config(format!("Env {name}")),
        };
        let [list, switch] = [setting("NCCL_OOB_NET_IFNAME", list), setting("NCCL_OOB_NET_ENABLE", switch)];
        let effective = [(list.name.as_str(), &list), (switch.name.as_str(), &switch)].into_iter().collect();
        bootstrap::refused(&effective, Version::parse(version).as_ref()).is_some()
    };
    for (list, switch, version, expected) in [
        ("mlx5_0 mlx5_1", "1", "2.24.3", true),
        ("^", "2", "2.30.7", true),
        ("mlx5_0,a b", "1", "2.24.3", false),
        ("", "1", "2.24.3", false),
        (",", "1", "2.24.3", false),
        ("^a b", "1", "2.24.3", false),
        ("mlx5_0 mlx5_1", "0", "2.24.3", false),
        ("mlx5_0 mlx5_1", "1", "2.23.4", false),
    ] {
        assert_eq!(refused(list, switch, version), expected, "{list} {switch} {version}");
    }
}
