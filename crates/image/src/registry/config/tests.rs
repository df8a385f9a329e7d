//! Which places an image has under a configuration.

use std::fs;

use super::location::MirrorUsage;
use super::*;

/// The configuration in these files: `registries.conf`, and files below it by their path.
fn config(files: &[(&str, &str)]) -> Result<RegistryConfig, String> {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let place = folder.path().display().to_string();
    RegistryConfig::read(&files_below(folder.path())).map_err(|error| error.to_string().replace(&place, "DIR"))
}

fn files_below(folder: &Path) -> ConfigFiles {
    ConfigFiles {
        named: None,
        user: Some(folder.join("home/registries.conf")),
        system: folder.join("registries.conf"),
        system_folder: folder.join("registries.conf.d"),
        user_folder: Some(folder.join("home/registries.conf.d")),
        recorded: vec![folder.join("short-name-aliases.conf")],
        daemon: folder.join("daemon.json"),
    }
}

/// The places of an image, one a line: its name, `insecure`, `blocked`.
fn places(config: &RegistryConfig, name: &str) -> Vec<String> {
    let sources = config.sources(&name.parse().unwrap()).unwrap();
    let flags = |source: &PullSource| {
        let insecure = if source.insecure { " insecure" } else { "" };
        let blocked = if source.blocked.is_some() { " blocked" } else { "" };
        format!("{}{insecure}{blocked}", source.name)
    };
    sources.iter().map(flags).collect()
}

fn of(text: &str, name: &str) -> Vec<String> {
    places(&config(&[("registries.conf", text)]).unwrap(), name)
}

/// The example of containers-registries.conf(5).
const EXAMPLE: &str = r#"
unqualified-search-registries = ["example.com"]

[[registry]]
prefix = "example.com/foo"
insecure = false
blocked = false
location = "internal-registry-for-example.com/bar"

[[registry.mirror]]
location = "example-mirror-0.local/mirror-for-foo"

[[registry.mirror]]
location = "example-mirror-1.local/mirrors/foo"
insecure = true

[[registry]]
location = "registry.com"

[[registry.mirror]]
location = "mirror.registry.com"
"#;

#[test]
fn mirrors_come_before_the_rewritten_location() {
    assert_eq!(
        of(EXAMPLE, "example.com/foo/image:latest"),
        [
            "example-mirror-0.local/mirror-for-foo/image:latest",
            "example-mirror-1.local/mirrors/foo/image:latest insecure",
            "internal-registry-for-example.com/bar/image:latest",
        ]
    );
    assert_eq!(of(EXAMPLE, "registry.com/image:1"), ["mirror.registry.com/image:1", "registry.com/image:1"]);
    assert_eq!(of(EXAMPLE, "example.com/food:1"), ["example.com/food:1"]);
    let config = config(&[("registries.conf", EXAMPLE)]).unwrap();
    let sources = config.sources(&"example.com/foo:2".parse().unwrap()).unwrap();
    let lines: Vec<_> =
        sources.iter().map(|source| source.origin.as_ref().unwrap().rsplit_once(':').unwrap().1).collect();
    assert_eq!(lines, ["10", "13", "4"]);
    assert_eq!(sources[2].name.to_string(), "internal-registry-for-example.com/bar:2");
}

#[test]
fn the_longest_prefix_applies() {
    let text = r#"
[[registry]]
prefix = "*.example.com"
insecure = true
[[registry]]
prefix = "a.example.com"
location = "host.local"
[[registry]]
prefix = "a.example.com/team"
location = "team.local/x"
[[registry]]
prefix = "a.example.com/team/one:5"
location = "five.local/y:5"
[[registry]]
prefix = "docker.io/library"
location = "hub.local:5000/library"
"#;
    for (name, place) in [
        ("x.y.example.com/i:1", "x.y.example.com/i:1 insecure"),
        ("a.example.com/i:1", "host.local/i:1"),
        // A port belongs to the host.
        ("a.example.com:5000/i:1", "a.example.com:5000/i:1"),
        ("a.example.com/team/one:1", "team.local/x/one:1"),
        ("a.example.com/team/one:5", "five.local/y:5"),
        ("a.example.com/teams/one:1", "host.local/teams/one:1"),
        ("example.com/i:1", "example.com/i:1"),
        ("debian", "hub.local:5000/library/debian:latest"),
        ("pytorch/pytorch:2", "docker.io/pytorch/pytorch:2"),
    ] {
        assert_eq!(of(text, name), [place], "{name}");
    }
    let digest = format!("debian@sha256:{}", "0".repeat(64));
    assert_eq!(of(text, &digest), [format!("hub.local:5000/library/{digest}")]);
}

#[test]
fn mirrors_can_be_restricted_to_digests_or_tags() {
    let digest = format!("r.com/i@sha256:{}", "0".repeat(64));
    let text = |flags: &str, usage: &str| {
        format!("[[registry]]\nlocation = 'r.com'\n{flags}\n[[registry.mirror]]\nlocation = 'm.com'\n{usage}")
    };
    for (flags, usage, by_tag, by_digest) in [
        ("", "", 2, 2),
        ("mirror-by-digest-only = true", "", 1, 2),
        ("", "pull-from-mirror = 'digest-only'", 1, 2),
        ("", "pull-from-mirror = 'tag-only'", 2, 1),
        ("", "pull-from-mirror = 'all'", 2, 2),
    ] {
        let text = text(flags, usage);
        assert_eq!((of(&text, "r.com/i:1").len(), of(&text, &digest).len()), (by_tag, by_digest), "{text}");
    }
    let both = text("mirror-by-digest-only = true", "pull-from-mirror = 'all'");
    let error = config(&[("registries.conf", &both)]).unwrap_err();
    assert_eq!(error, "DIR/registries.conf:4: pull-from-mirror contradicts mirror-by-digest-only of the registry");
    assert!(MirrorUsage::default().includes(true));
}

#[test]
fn a_blocked_registry_may_have_mirrors() {
    // OpenShift writes this for sources that must never be contacted.
    let text = "[[registry]]\nlocation = 'r.com'\nblocked = true\n[[registry.mirror]]\nlocation = 'm.com'\n\
                [[registry]]\nlocation = 'n.com'\nblocked = true";
    assert_eq!(of(text, "r.com/i:1"), ["m.com/i:1", "r.com/i:1 blocked"]);
    assert_eq!(of(text, "m.com/i:1"), ["m.com/i:1"]);
    // A rewritten location does not lift the block.
    let moved = "[[registry]]\nprefix = 'r.com'\nlocation = 's.com'\nblocked = true";
    assert_eq!(of(moved, "r.com/i:1"), ["s.com/i:1 blocked"]);
    let mirror = "[[registry]]\nlocation = 'r.com'\n[[registry.mirror]]\nlocation = 'm.com'\n\
                  [[registry]]\nlocation = 'm.com'\nblocked = true";
    assert_eq!(of(mirror, "r.com/i:1"), ["m.com/i:1 blocked", "r.com/i:1"]);
}

#[test]
fn later_files_replace_tables_of_the_same_prefix() {
    let at = |host: &str| format!("[[registry]]\nprefix = 'r.com'\nlocation = '{host}'\n");
    let main = at("main.com");
    let one = at("one.com");
    let two = at("two.com");
    let user = at("user.com");
    let mut files = vec![("registries.conf", &*main)];
    let place = |files: &[(&str, &str)]| places(&config(files).unwrap(), "r.com/i:1").remove(0);
    assert_eq!(place(&files), "main.com/i:1");
    files.push(("registries.conf.d/10-b.conf", &two));
    files.push(("registries.conf.d/00-a.conf", &one));
    files.push(("registries.conf.d/README", "not TOML"));
    assert_eq!(place(&files), "two.com/i:1");
    files.push(("home/registries.conf.d/00.conf", &user));
    assert_eq!(place(&files), "user.com/i:1");
    // The user's file replaces everything of the system.
    files.pop();
    files.push(("home/registries.conf", ""));
    assert_eq!(place(&files), "r.com/i:1");
}

#[test]
fn the_first_table_of_a_prefix_in_a_file_counts() {
    let text =
        "[[registry]]\nprefix = 'r.com'\nlocation = 'one.com'\n[[registry]]\nprefix = 'r.com'\nlocation = 'two.com'";
    assert_eq!(of(text, "r.com/i:1"), ["one.com/i:1"]);
}

#[test]
fn tables_of_one_location_must_agree() {
    for (flags, key) in [("insecure = true", "insecure"), ("blocked = true", "blocked")] {
        let text = format!(
            "[[registry]]\nprefix = 'a.com'\nlocation = 'r.com'\n[[registry]]\nlocation = 'r.com/'\n{flags}\n\
             [[registry]]\nlocation = 'other.com'\n{flags}"
        );
        let error = config(&[("registries.conf", &text)]).unwrap_err();
        let what = "of the location 'r.com' contradicts DIR/registries.conf:1";
        assert!(
            error.starts_with(&format!("DIR/registries.conf:4: '{key}' {what}\n  help: set '{key}' to")),
            "{error}"
        );
        let wild = format!("[[registry]]\nprefix = '*.r.com'\n[[registry]]\nprefix = '*.r.com'\n{flags}");
        assert!(config(&[("registries.conf", &wild)]).unwrap_err().contains("of the location '*.r.com'"));
        // A later file replaces tables, and does not contradict them.
        let later = format!("[[registry]]\nlocation = 'r.com'\n{flags}");
        config(&[("registries.conf", "[[registry]]\nlocation = 'r.com'"), ("registries.conf.d/x.conf", &later)])
            .unwrap();
    }
}

#[test]
fn a_named_file_must_exist_and_replaces_the_users() {
    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join("named");
    let files = ConfigFiles { named: Some(named.clone()), ..files_below(folder.path()) };
    let error = RegistryConfig::read(&files).unwrap_err().to_string();
    assert!(error.ends_with("named: no such file or directory"), "{error}");
    fs::create_dir(folder.path().join("home")).unwrap();
    fs::write(folder.path().join("home/registries.conf"), "[[registry]]\nprefix = 'r.com'\nlocation = 'user.com'")
        .unwrap();
    fs::write(&named, "[[registry]]\nprefix = 'r.com'\nlocation = 'named.com'").unwrap();
    assert_eq!(places(&RegistryConfig::read(&files).unwrap(), "r.com/i:1"), ["named.com/i:1"]);
    let variables = [("CONTAINERS_REGISTRIES_CONF", "/named"), ("HOME", "/home/u")];
    let usual =
        ConfigFiles::usual(&variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect());
    assert_eq!(usual.named.as_deref(), Some(Path::new("/named")));
    assert_eq!(usual.user.as_deref(), Some(Path::new("/home/u/.config/containers/registries.conf")));
}

#[test]
fn mistakes_are_located() {
    for (text, told) in [
        ("a = [", ":1: "),
        ("\n[[registry]]\ninsecure = true", ":2: the registry has neither a prefix nor a location"),
        ("[[registry]]\nprefix = 'r.com'", ":1: the registry with the prefix 'r.com' has no location"),
        ("[[registry]]\nprefix = '*.r.com/x'", ":1: the prefix '*.r.com/x' is invalid: a wildcard has the form"),
        ("[[registry]]\nprefix = 'a.*.com'\nlocation = 'b.com'", ":1: the prefix 'a.*.com' is invalid"),
        ("[[registry]]\nlocation = 'https://r.com'", ":2: 'https://r.com': write HOST[:PORT][/PATH] without a scheme"),
        ("short-name-mode = 'strict'", ":1: short-name-mode 'strict': expected enforcing, permissive or disabled"),
        ("[[registry]]\nlocation = 5", ":2: "),
        (
            "[[registry]]\nlocation = 'r.com'\n[registries.block]\nregistries = ['r.com']",
            ":3: the lists of version 1 and the keys of version 2 are in one file",
        ),
    ] {
        let error = config(&[("registries.conf", text)]).unwrap_err();
        assert!(error.starts_with(&format!("DIR/registries.conf{told}")), "{error}");
    }
    let config = config(&[("registries.conf", "[[registry]]\nprefix = 'r.com'\nlocation = 'mirror'")]).unwrap();
    let error = config.sources(&"r.com/i:1".parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("registries.conf:1: 'mirror/i:1' is not an image name: 'mirror' is not a host"), "{error}");
}

#[test]
fn version_1_is_converted() {
    let text = "[registries.search]\nregistries = ['s.com']\n[registries.insecure]\nregistries = ['i.com', 'b.com']\n\
                [registries.block]\nregistries = ['b.com']";
    assert_eq!(of(text, "i.com/x:1"), ["i.com/x:1 insecure"]);
    assert_eq!(of(text, "b.com/x:1"), ["b.com/x:1 insecure blocked"]);
    let config = config(&[("registries.conf", text)]).unwrap();
    assert_eq!(config.candidates("x").unwrap()[0].name.to_string(), "s.com/x:latest");
}

#[test]
fn short_names_follow_aliases_and_search_registries() {
    let names = |files: &[(&str, &str)], text: &str| -> Result<Vec<String>, String> {
        let candidates = config(files).unwrap().candidates(text).map_err(|error| error.to_string())?;
        Ok(candidates.iter().map(|candidate| candidate.name.to_string()).collect())
    };
    let docker = names(&[], "debian").unwrap();
    assert_eq!(docker, ["docker.io/library/debian:latest"]);
    assert_eq!(names(&[], "pytorch/pytorch:2").unwrap(), ["docker.io/pytorch/pytorch:2"]);
    let search = (
        "registries.conf",
        "unqualified-search-registries = ['a.com', 'b.com:5000']\n[aliases]\n'torch' = 'quay.io/ml/torch'\n'gone' = 'x.com/y'",
    );
    assert_eq!(names(&[search], "debian:12").unwrap(), ["a.com/debian:12", "b.com:5000/debian:12"]);
    assert_eq!(names(&[search], "torch:2").unwrap(), ["quay.io/ml/torch:2"]);
    let digest = format!("torch@sha256:{}", "0".repeat(64));
    assert_eq!(names(&[search], &digest).unwrap(), [format!("quay.io/ml/{digest}")]);
    let drop_in = (
        "registries.conf.d/x.conf",
        "unqualified-search-registries = []\nshort-name-mode = 'enforcing'\n[aliases]\ngone = ''",
    );
    assert_eq!(names(&[search, drop_in], "gone").unwrap(), ["docker.io/library/gone:latest"]);
    let recorded = ("short-name-aliases.conf", "[aliases]\n'torch' = 'chosen.com/torch'");
    assert_eq!(names(&[search, drop_in, recorded], "torch").unwrap(), ["chosen.com/torch:latest"]);
    let enforcing = ("registries.conf.d/y.conf", "short-name-mode = 'enforcing'");
    let error = names(&[search, enforcing], "debian").unwrap_err();
    assert!(error.starts_with("'debian' may be an image of a.com or b.com:5000: "), "{error}");
    assert!(error.ends_with("help: write one of docker://a.com/debian, docker://b.com:5000/debian"), "{error}");
    for (text, short) in
        [("debian", true), ("a/b:1", true), ("a.com/b", false), ("localhost/b", false), ("h:1/b", false)]
    {
        assert_eq!(is_short(text), short, "{text}");
    }
}

#[test]
fn dockers_mirrors_serve_docker_hub_only() {
    let daemon = r#"{"registry-mirrors": ["https://m.local", "http://n.local:5000/"],
                     "insecure-registries": ["r.com:5000", "10.0.0.0/8", "m.local"]}"#;
    let only = config(&[("daemon.json", daemon)]).unwrap();
    assert_eq!(
        places(&only, "debian"),
        [
            "m.local/library/debian:latest insecure",
            "n.local:5000/library/debian:latest insecure",
            "docker.io/library/debian:latest",
        ]
    );
    for (name, place) in [
        ("r.com:5000/i:1", "r.com:5000/i:1 insecure"),
        ("r.com/i:1", "r.com/i:1"),
        ("10.1.2.3:80/i:1", "10.1.2.3:80/i:1 insecure"),
        ("11.1.2.3:80/i:1", "11.1.2.3:80/i:1"),
    ] {
        assert_eq!(places(&only, name), [place]);
    }
    // registries.conf comes first.
    let both = config(&[("daemon.json", daemon), ("registries.conf", "[[registry]]\nlocation = 'docker.io'")]).unwrap();
    assert_eq!(places(&both, "debian"), ["docker.io/library/debian:latest"]);
    for (text, told) in [
        ("{\n \"registry-mirrors\": 5}", "DIR/daemon.json:2:"),
        (
            r#"{"registry-mirrors": ["m.local"]}"#,
            "DIR/daemon.json: registry-mirrors: 'm.local' is not the URL of a mirror",
        ),
        (
            r#"{"registry-mirrors": ["https://m.local/x"]}"#,
            "DIR/daemon.json: registry-mirrors: 'https://m.local/x' must be",
        ),
    ] {
        let error = config(&[("daemon.json", text)]).unwrap_err();
        assert!(error.starts_with(told), "{error}");
    }
    assert_eq!(places(&config(&[("daemon.json", "")]).unwrap(), "debian"), ["docker.io/library/debian:latest"]);
}
