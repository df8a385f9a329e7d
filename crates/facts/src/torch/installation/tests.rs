use super::*;
use crate::start::{self, PythonTarget};
use crate::tests::synthetic::{file, rootfs};
use model::{Entry, EntryKind, FileOwner, Found, ImageConfig, UnknownConfig};

const PACKAGES: &str = "usr/lib/python3.11/site-packages";

/// An image of a system's Python and more files, all of root; a mode may follow a path.
fn image(files: &[(&str, u32)]) -> RootFs {
    let system = [("usr/bin/python3.11", 0o755), ("usr/lib/python3.11/os.py", 0o644), ("etc/passwd", 0o644)];
    rootfs(system.iter().chain(files).map(|(path, mode)| {
        let (path, kind) = match path.strip_suffix('/') {
            Some(folder) => (folder, EntryKind::Directory),
            None => (*path, EntryKind::File),
        };
        let text: &[u8] = match path {
            "etc/passwd" => b"root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n",
            path if path.rsplit('.').next() == Some("pth") => b"import mine\n",
            _ => b"#",
        };
        let entry = Entry { kind, mode: *mode, owner: Some(FileOwner::ROOT), size: text.len() as u64, ..file(path) };
        (entry, vec![Ok(Found::Text(text.into()))])
    }))
}

fn installation(files: &[(&str, u32)], user: &str, variables: &[(&str, &str)]) -> Installation {
    let rootfs = image(files);
    let config = ImageConfig {
        user: user.to_owned(),
        working_directory: "/work".to_owned(),
        environment: variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        unknown: UnknownConfig { user: (user == "?").then(|| Gap::new("the host's")), ..UnknownConfig::default() },
        ..ImageConfig::default()
    };
    let state = start::ProcessState::initial(&rootfs, Some(&config));
    let call = PythonCall::plain(ImagePath::from("usr/bin/python3.11"), state);
    let python = Python::of(&rootfs, &PythonCall { target: PythonTarget::Code, ..call });
    Installation::find(&rootfs, python.as_ref())
}

fn torch(folder: &str) -> [(String, u32); 2] {
    ["__init__.py", "version.py"].map(|name| (format!("{folder}/torch/{name}"), 0o644))
}

fn path(chosen: &Fact<ImagePath>) -> Option<String> {
    chosen.value().map(ToString::to_string)
}

/// Runs with PyTorch in some directories, and more files.
fn with(folders: &[&str], more: &[(&str, u32)], user: &str, variables: &[(&str, &str)]) -> Installation {
    let files: Vec<_> = folders.iter().flat_map(|folder| torch(folder)).collect();
    let files: Vec<_> = files.iter().map(|(path, mode)| (path.as_str(), *mode)).chain(more.iter().copied()).collect();
    installation(&files, user, variables)
}

#[test]
fn the_first_one_on_the_path_is_chosen() {
    let found = with(&[PACKAGES, "srv/code"], &[], "", &[("PYTHONPATH", "/srv/code")]);
    assert_eq!(path(&found.chosen).as_deref(), Some("/srv/code/torch"));
    assert_eq!(found.shadow, None);
    let found = with(&[PACKAGES, "srv/code"], &[], "", &[]);
    assert_eq!(path(&found.chosen), Some(format!("/{PACKAGES}/torch")));
}

#[test]
fn what_is_not_pytorch_shadows_it() {
    for shadow in ["work/torch/__init__.py", "work/torch.py"] {
        let found = with(&[PACKAGES], &[(shadow, 0o644)], "", &[]);
        let expected = shadow.trim_end_matches("/__init__.py");
        assert_eq!(path(&found.chosen), Some(format!("/{expected}")));
        let hidden = ImagePath::from(format!("{PACKAGES}/torch").as_str());
        assert_eq!(found.shadow, Some((ImagePath::from(expected), Some(hidden))));
    }
    // A directory without code does not.
    let found = with(&[PACKAGES], &[("work/torch/notes.txt", 0o644)], "", &[]);
    assert_eq!((path(&found.chosen), found.shadow), (Some(format!("/{PACKAGES}/torch")), None));
}

#[test]
fn a_torch_of_another_interpreter_is_named() {
    let other = "opt/venv/lib/python3.11/site-packages";
    let found = with(&[other], &[], "", &[]);
    assert_eq!(found.elsewhere, [ImagePath::from("opt/venv/lib/python3.11/site-packages/torch")]);
    assert!(matches!(found.chosen, Fact::Absent));
    // It is covered if its own interpreter imports it.
    let own = [("opt/venv/bin/python3", 0o755), ("opt/venv/lib/python3.11/os.py", 0o644)];
    let found = with(&[other], &own, "", &[]);
    assert_eq!(found.elsewhere.len(), 1);
    assert_eq!(path(&found.chosen), Some(format!("/{other}/torch")));
}

#[test]
fn unknown_code_matters_only_where_there_is_another_torch() {
    let hook = format!("{PACKAGES}/mine.pth");
    let hook = [(hook.as_str(), 0o644)];
    let found = with(&[PACKAGES], &hook, "", &[]);
    assert_eq!(path(&found.chosen), Some(format!("/{PACKAGES}/torch")));
    for other in ["srv/code", "opt/venv/lib/python3.11/site-packages"] {
        let Fact::Unknown(gap) = with(&[PACKAGES, other], &hook, "", &[]).chosen else { panic!("{other}") };
        assert!(gap.why.contains("mine.pth") && gap.why.contains(other), "{}", gap.why);
    }
    // Neither a part of another package nor a copy in conda's store can be imported by this name.
    let part = [hook[0], ("srv/horovod/__init__.py", 0o644)];
    assert!(with(&[PACKAGES, "srv/horovod"], &part, "", &[]).chosen.value().is_some());
    let stored = [hook[0], ("opt/conda/pkgs/torch-2/info/index.json", 0o644)];
    let store = "opt/conda/pkgs/torch-2/site-packages";
    assert!(with(&[PACKAGES, store], &stored, "", &[]).chosen.value().is_some());
    assert!(matches!(with(&[PACKAGES, store], &hook, "", &[]).chosen, Fact::Unknown(_)), "only a folder named pkgs");
}

#[test]
fn the_mode_that_keeps_the_user_out_is_named() {
    let code = "root/code";
    let variables = [("PYTHONPATH", "/root/code")];
    let closed = [("root/", 0o700)];
    let found = with(&[code], &closed, "ann", &variables);
    assert_eq!(
        found.unreadable.as_deref(),
        Some("user 1000 may not enter or list /root (mode 0700, owner 0:0), which leads to /root/code/torch")
    );
    assert!(matches!(found.chosen, Fact::Absent));
    for user in ["", "root", "0:0"] {
        let found = with(&[code], &closed, user, &variables);
        assert_eq!((path(&found.chosen).as_deref(), found.unreadable), (Some("/root/code/torch"), None));
    }
    // A package whose own directory is closed is imported as an empty namespace.
    let package = format!("{PACKAGES}/torch/");
    let found = with(&[PACKAGES], &[(&package, 0o700)], "1000", &[]);
    assert!(found.unreadable.is_some_and(|why| why.contains("torch (mode 0700, owner 0:0)")));
    // A file that cannot be read ends the import.
    let found =
        with(&[], &[(&format!("{package}__init__.py"), 0o600), (&format!("{package}version.py"), 0o644)], "1000", &[]);
    assert!(found.unreadable.is_some_and(|why| why.contains("__init__.py (mode 0600")));
    // Another torch that this user can read is imported.
    let found = with(&[PACKAGES, code], &closed, "1000", &variables);
    assert_eq!((path(&found.chosen), found.unreadable), (Some(format!("/{PACKAGES}/torch")), None));
}

#[test]
fn a_user_who_is_unknown_may_be_kept_out() {
    let found = with(&[PACKAGES], &[], "?", &[]);
    assert!(matches!(found.chosen, Fact::Seen { .. }) && found.unreadable.is_none());
    for (folders, more) in
        [(&[PACKAGES][..], &[("usr/", 0o700)][..]), (&[PACKAGES, "home/ann/.local/lib/python3.11/site-packages"], &[])]
    {
        let found = with(folders, more, "?", &[]);
        let Fact::Unknown(gap) = found.chosen else { panic!("{found:?}") };
        assert!(gap.why.ends_with("the user is unknown: the host's"), "{gap}");
        assert!(found.unreadable.is_none());
    }
}

#[test]
fn a_package_of_another_python_or_another_home_is_told_from_one_that_no_python_imports() {
    let other = |files: &[&str], more: &[(&str, u32)]| {
        let found = with(files, more, "", &[("HOME", "/home/ann")]);
        (found.other_python.map(|path| path.to_string()), found.elsewhere.iter().find_map(home_of))
    };
    let python = [("opt/v/bin/python3.12", 0o755), ("opt/v/lib/python3.12/os.py", 0o644)];
    assert_eq!(
        other(&["opt/v/lib/python3.12/site-packages"], &python),
        (Some("/opt/v/bin/python3.12".to_owned()), None)
    );
    assert_eq!(other(&["opt/v/lib/python3.12/site-packages"], &[]), (None, None));
    assert_eq!(other(&["root/.local/lib/python3.11/site-packages"], &[]), (None, Some(ImagePath::from("/root"))));
}
