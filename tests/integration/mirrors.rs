//! Images that a mirror serves, by the registries.conf of the user.

use std::fs;

use serde_json::Value;

use crate::registry::registry;
use crate::support::{layout, run_with, stderr};

#[test]
fn a_rewritten_location_serves_the_image_and_the_report_names_it() {
    let layout = layout("good");
    let (image, _) = registry(layout.path().to_owned());
    let host = image.strip_prefix("docker://").unwrap().split('/').next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let conf = folder.path().join("registries.conf");
    let text = format!(
        "[[registry]]\nprefix = 'registry.example/team'\nlocation = '{host}/a'\n\n\
         [[registry]]\nlocation = 'blocked.example'\nblocked = true\n\n[aliases]\n'torch' = 'registry.example/team/b'\n"
    );
    fs::write(&conf, text).unwrap();
    let variables = [("CONTAINERS_REGISTRIES_CONF", conf.to_str().unwrap())];
    let served_by = format!("docker://{host}/a/b:1 ({}:1)", conf.display());
    // A name with a transport, a full name, and a short name with an alias.
    for name in ["docker://registry.example/team/b:1", "registry.example/team/b:1", "torch:1"] {
        let output = run_with(&variables, &["check", "--format", "json", name], None);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        assert_eq!(report["image"]["source"], "docker://registry.example/team/b:1", "{name}");
        assert_eq!(report["image"]["served_by"], served_by, "{name}");
        assert_eq!(report["verdict"], "pass", "{name}");
    }
    let output = run_with(&variables, &["inspect", "docker://registry.example/team/b:1"], None);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&format!("  served by   docker://{host}/a/b:1")), "{text}");
    let output = run_with(&variables, &["check", "docker://blocked.example/x"], None);
    assert_eq!(
        stderr(&output),
        format!(
            "error: docker://blocked.example/x: blocked.example/x:latest is not fetched: {0}:5 blocks blocked.example\n  help: name an image of an allowed \
             registry, or remove 'blocked' at {0}:5\n",
            conf.display()
        )
    );
}
