use std::collections::BTreeMap;
use std::sync::Arc;

use crate::layer::scan::{Compression, LayerScan};
use crate::model::{Entry, Found, Kind, Limits};

use super::*;

/// An image of text files and symbolic links (`-> TARGET`).
fn image(files: &[(&str, &str)]) -> RootFs {
    let mut entries = Vec::new();
    let mut found = BTreeMap::new();
    for (index, (path, content)) in files.iter().enumerate() {
        let kind = match content.strip_prefix("-> ") {
            Some(target) => Kind::Symlink(target.as_bytes().into()),
            None => Kind::File,
        };
        entries.push(Entry { path: (*path).into(), kind, mode: 0o755, size: content.len() as u64 });
        found.insert(index, vec![Ok(Found::Text(content.as_bytes().into()))]);
    }
    let layer = LayerScan { compression: Compression::None, unpacked: 0, diff_id: None, entries, found };
    RootFs::fold(vec![Arc::new(layer)], &Limits::default())
}

fn config(environment: &[(&str, &str)], command: &[&str]) -> ImageConfig {
    ImageConfig {
        environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        ..ImageConfig::default()
    }
}

/// The interpreter's name, and the folders of its packages.
fn python(files: &[(&str, &str)], config: &ImageConfig) -> (String, Vec<String>) {
    let python = Python::find(&image(files), Some(config)).unwrap();
    (python.name.to_string(), python.site_packages.iter().map(ToString::to_string).collect())
}

const SYSTEM: [(&str, &str); 4] = [
    ("usr/bin/python3", "-> python3.11"),
    ("usr/bin/python3.11", "elf"),
    ("usr/lib/python3.11/os.py", "#"),
    ("usr/lib/python3/dist-packages/x.py", "#"),
];

#[test]
fn virtual_environments_may_see_the_system() {
    let virtual_environment = |sees: &'static str| {
        let files = [
            ("opt/venv/bin/python", "-> /usr/bin/python3"),
            ("opt/venv/pyvenv.cfg", sees),
            ("opt/venv/lib/python3.11/site-packages/x.py", "#"),
        ];
        python(&[&SYSTEM[..], &files].concat(), &config(&[("PATH", "/opt/venv/bin:/usr/bin")], &[])).1
    };
    let own = "/opt/venv/lib/python3.11/site-packages";
    assert_eq!(virtual_environment("home = /usr/bin\ninclude-system-site-packages = false\n"), [own]);
    assert_eq!(
        virtual_environment("home = /usr/bin\ninclude-system-site-packages = true\n"),
        [own, "/usr/lib/python3/dist-packages"]
    );
}

#[test]
fn path_files_and_the_users_own_folder() {
    let files = [
        ("usr/lib/python3/dist-packages/a.pth", "# a comment\n/srv/code\nmissing\nimport x\n"),
        ("srv/code/x.py", "#"),
        ("root/.local/lib/python3.11/site-packages/x.py", "#"),
        ("extra/x.py", "#"),
    ];
    let files = [&SYSTEM[..], &files].concat();
    let user = "/root/.local/lib/python3.11/site-packages";
    let rest = ["/usr/lib/python3/dist-packages", "/srv/code"];
    assert_eq!(python(&files, &config(&[], &[])).1, [&[user][..], &rest].concat());
    let variables = [("PYTHONNOUSERSITE", "1"), ("PYTHONPATH", "/extra")];
    assert_eq!(python(&files, &config(&variables, &[])).1, [&["/extra"][..], &rest].concat());
    let hooks = Python::find(&image(&files), None).unwrap().hooks;
    assert_eq!(hooks, [ImagePath::from("usr/lib/python3/dist-packages/a.pth")]);
}

#[test]
fn the_command_names_the_interpreter() {
    let files = [
        ("opt/conda/bin/conda", "#!/opt/conda/bin/python"),
        ("opt/conda/bin/python", "-> python3.12"),
        ("opt/conda/bin/python3.12", "elf"),
        ("opt/conda/lib/python3.12/os.py", "#"),
        ("opt/conda/envs/train/bin/python", "-> python3.10"),
        ("opt/conda/envs/train/bin/python3.10", "elf"),
        ("opt/conda/envs/train/lib/python3.10/os.py", "#"),
        ("opt/conda/envs/train/lib/python3.10/site-packages/x.py", "#"),
    ];
    let files = [&SYSTEM[..], &files].concat();
    let path = [("PATH", "/opt/conda/bin:/usr/bin")];
    for (command, name) in [
        (&["bash"][..], "/opt/conda/bin/python"),
        (&["/usr/bin/python3", "train.py"], "/usr/bin/python3"),
        (&["tini", "--", "python3.11", "train.py"], "/usr/bin/python3.11"),
        (&["conda", "run", "-n", "train", "python", "train.py"], "/opt/conda/envs/train/bin/python"),
    ] {
        assert_eq!(python(&files, &config(&path, command)).0, name, "{command:?}");
    }
    let folders = python(&files, &config(&path, &["conda", "run", "-n", "train", "python"])).1;
    assert_eq!(folders, ["/opt/conda/envs/train/lib/python3.10/site-packages"]);
}

#[test]
fn shims_of_pyenv_are_followed_where_there_is_one_version() {
    let shims = [
        ("opt/pyenv/shims/python", "#!/usr/bin/env bash"),
        ("opt/pyenv/versions/3.11.7/bin/python", "-> python3.11"),
        ("opt/pyenv/versions/3.11.7/bin/python3.11", "elf"),
        ("opt/pyenv/versions/3.11.7/lib/python3.11/os.py", "#"),
    ];
    let other = ("opt/pyenv/versions/3.12.1/bin/python", "elf");
    let path = ("PATH", "/opt/pyenv/shims");
    assert_eq!(python(&shims, &config(&[path], &[])).0, "/opt/pyenv/versions/3.11.7/bin/python");
    let both = [&shims[..], &[other]].concat();
    let unknown = Python::find(&image(&both), Some(&config(&[path], &[]))).unwrap();
    assert!(unknown.program.unwrap_err().why.contains("shim of pyenv"));
    let chosen = config(&[path, ("PYENV_VERSION", "3.11.7")], &[]);
    assert_eq!(python(&both, &chosen).0, "/opt/pyenv/versions/3.11.7/bin/python");
}
