mod budget;
mod imports;
mod programs;
mod real;

use crate::start;
use crate::tests::synthetic::{rootfs, text_or_link};
use model::ImageConfig;

use super::*;

/// An image of text files and symbolic links (`-> TARGET`).
fn image(files: &[(&str, &str)]) -> RootFs {
    rootfs(files.iter().map(|(path, content)| text_or_link(path, content)))
}

fn config(environment: &[(&str, &str)], command: &[&str]) -> ImageConfig {
    ImageConfig {
        environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        ..ImageConfig::default()
    }
}

fn python_of(rootfs: &RootFs, config: Option<&ImageConfig>) -> Option<Python> {
    start::python(rootfs, config).and_then(|call| Python::of(rootfs, &call))
}

/// The interpreter's name, and its site directories.
fn python(files: &[(&str, &str)], config: &ImageConfig) -> (String, Vec<String>) {
    let python = python_of(&image(files), Some(config)).unwrap();
    (python.call.program.to_string(), python.site_packages.iter().map(ToString::to_string).collect())
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
        ("etc/passwd", "root:x:0:0::/root:/bin/sh"),
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
    let hooks = python_of(&image(&files), None).unwrap().hooks;
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
        ("opt/conda/bin/conda", "#!/opt/conda/bin/python\n"),
        ("usr/bin/tini", "#!/usr/bin/python3.11\n"),
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
fn shims_of_pyenv_run_the_chosen_version() {
    let program = |version: &str| format!("opt/pyenv/versions/{version}/bin/python");
    let programs = ["3.11.7", "3.12.1", "3.12.10"].map(program);
    let shim = ("opt/pyenv/shims/python", "#!/usr/bin/env bash");
    let versions: Vec<_> = programs.iter().map(|path| (path.as_str(), "elf")).chain([shim]).collect();
    let ran = |files: &[(&str, &str)], variables: &[(&str, &str)], folder: &str| {
        let path = [("PATH", "/opt/pyenv/shims:/usr/bin")];
        let config =
            ImageConfig { working_directory: folder.to_owned(), ..config(&[&path[..], variables].concat(), &[]) };
        let python = python_of(&image(&[&versions[..], files].concat()), Some(&config)).unwrap();
        python.program.map(|path| path.to_string()).map_err(|gap| gap.why)
    };
    let of = |version: &str| Ok(format!("/{}", program(version)));
    let global = ("opt/pyenv/version", "# chosen\n3.11.7 3.12.1\n");
    let local = ("srv/app/.python-version", "3.12.1\n");
    assert_eq!(ran(&[global], &[], "/"), of("3.11.7"));
    assert_eq!(ran(&[global, local], &[], "/srv/app/deep"), of("3.12.1"), "a file above the working directory");
    assert_eq!(ran(&[global, local], &[("PYENV_VERSION", "3.11.7")], "/srv/app"), of("3.11.7"));
    assert_eq!(ran(&[global], &[("PYENV_VERSION", "3.12")], "/"), of("3.12.10"), "the latest of a series");
    assert_eq!(ran(&[global], &[("PYENV_VERSION", "3.9.1:python-3.12.1")], "/"), of("3.12.1"));
    // Without a choice, the system's own runs.
    let system = ("usr/bin/python", "elf");
    assert_eq!(ran(&[system], &[], "/"), Ok("/usr/bin/python".to_owned()));
    let why = ran(&[], &[], "/").unwrap_err();
    assert!(why.contains("pyenv shim") && why.contains("system"), "{why}");
}

/// The path of the chosen interpreter, if any.
fn chosen(files: &[(&str, &str)], config: &ImageConfig) -> Option<String> {
    python_of(&image(files), Some(config)).map(|python| python.call.program.to_string())
}

#[test]
fn the_first_folder_of_path_with_a_usable_interpreter_wins() {
    let files = [
        ("a/python", "-> python2.7"),
        ("a/python2.7", "elf"),
        ("b/python", "elf"),
        ("c/python", "elf"),
        ("c/python3", "elf"),
        ("usr/local/bin/python3", "elf"),
        ("usr/bin/python3", "elf"),
    ];
    let with_path = |path: &str| chosen(&files, &config(&[("PATH", path)], &[]));
    for (path, name) in [
        ("/b:/c", Some("/b/python")),
        ("/c:/b", Some("/c/python")),
        ("/a:/none:/c:/b", Some("/c/python")),
        // python takes priority over python3, wherever they are.
        ("/usr/bin:/b", Some("/b/python")),
        ("/usr/bin:/a", Some("/usr/bin/python3")),
        ("/a", None),
        ("/none", None),
    ] {
        assert_eq!(with_path(path).as_deref(), name, "{path}");
    }
    assert_eq!(chosen(&files, &config(&[], &[])).as_deref(), Some("/usr/local/bin/python3"), "the PATH of runtimes");
}

#[test]
fn a_command_is_a_path_or_a_name_that_looks_like_python() {
    let files = [
        ("usr/bin/python3", "elf"),
        ("srv/python3.9", "elf"),
        ("usr/bin/python3x", "elf"),
        ("usr/bin/python3.8", "elf"),
        ("usr/bin/run.py", "text"),
    ];
    for (entrypoint, command, folder, name) in [
        (&[][..], &["./python3.9"][..], "/srv", "/srv/python3.9"),
        (&[], &["./python3.9"], "/", "/usr/bin/python3"),
        (&["python3.8"], &["python3"], "", "/usr/bin/python3.8"),
        (&["bash"], &["python3.8"], "", "/usr/bin/python3"),
        (&[], &["python3x"], "", "/usr/bin/python3"),
        (&[], &["/usr/bin/run.py"], "", "/usr/bin/python3"),
        (&[], &["python3.7", "python3.8"], "", "/usr/bin/python3"),
    ] {
        let config = ImageConfig {
            entrypoint: entrypoint.iter().map(|word: &&str| (*word).to_owned()).collect(),
            working_directory: folder.to_owned(),
            ..config(&[], command)
        };
        assert_eq!(chosen(&files, &config).as_deref(), Some(name), "{entrypoint:?} {command:?}");
    }
}

#[test]
fn the_minor_version_is_that_of_the_file_or_of_the_only_library() {
    let minor = |files: &[(&str, &str)]| python_of(&image(files), None).unwrap().minor;
    assert_eq!(minor(&[("usr/bin/python3", "-> python3.11"), ("usr/bin/python3.11", "elf")]), Some(11));
    let program = ("usr/bin/python3", "elf");
    let [nine, ten] = ["usr/lib/python3.9/os.py", "usr/lib/python3.10/os.py"].map(|path| (path, "#"));
    assert_eq!(minor(&[program, nine]), Some(9));
    assert_eq!(minor(&[program, nine, ("usr/lib/python3.8", "a file")]), Some(9));
    assert_eq!(minor(&[program, nine, ten]), None);
    assert_eq!(minor(&[program]), None);
}

#[test]
fn shims_are_those_of_a_folder_with_versions_beside_it() {
    let program = ("opt/pyenv/versions/3.11.7/bin/python", "elf");
    let path = config(&[("PATH", "/opt/pyenv/shims:/opt/pyenv/bin")], &[]);
    let version = config(&[("PATH", "/opt/pyenv/shims"), ("PYENV_VERSION", "3.12.1")], &[]);
    let program_of = |files: &[(&str, &str)], config: &ImageConfig| {
        python_of(&image(files), Some(config)).unwrap().program.map(|path| path.to_string()).map_err(|gap| gap.why)
    };
    let shim = ("opt/pyenv/shims/python", "text");
    assert_eq!(program_of(&[shim], &path), Ok("/opt/pyenv/shims/python".to_owned()), "no versions");
    let other = ("opt/pyenv/bin/python", "text");
    assert_eq!(program_of(&[other, program], &path), Ok("/opt/pyenv/bin/python".to_owned()), "another folder");
    assert!(program_of(&[shim, program], &version).unwrap_err().contains("pyenv shim"), "another version");
    // A version without an interpreter does not count.
    let broken = ("opt/pyenv/versions/3.12.1/README", "text");
    let chosen = ("opt/pyenv/version", "3.12.1 3.11.7");
    let files = [shim, program, broken, chosen];
    assert_eq!(program_of(&files, &path), Ok("/opt/pyenv/versions/3.11.7/bin/python".to_owned()));
}

/// Site directories, without the system's own.
fn own(files: &[(&str, &str)], config: &ImageConfig) -> Vec<String> {
    let folders = python(&[&SYSTEM[..], files].concat(), config).1;
    folders.into_iter().filter(|folder| folder != "/usr/lib/python3/dist-packages").collect()
}

#[test]
fn the_home_is_that_of_the_images_user() {
    let passwd =
        "root:x:0:0::/root:/bin/sh\nshort:x:1\nann:x:1000:100::/home/ann:/bin/sh\nbob:x:1001:100::/srv/bob:/bin/sh";
    let packages = |home: &str| format!("{home}/.local/lib/python3.11/site-packages");
    let homes = ["root", "home/ann", "srv/bob", "other"].map(packages);
    let below: Vec<_> = [String::new()].iter().chain(&homes).map(|folder| format!("{folder}/x.py")).collect();
    let [none, root, ann, bob, other] = &*below else { unreachable!() };
    let top = packages("").trim_start_matches('/').to_owned() + none;
    let files = [("etc/passwd", passwd), (&top, "#"), (root, "#"), (ann, "#"), (bob, "#"), (other, "#")];
    for (user, home, folder) in [
        ("", None, "/root"),
        ("root", None, "/root"),
        ("0:0", None, "/root"),
        ("ann", None, "/home/ann"),
        ("1001", None, "/srv/bob"),
        ("bob:100", None, "/srv/bob"),
        // Runtimes start an unknown user in the root directory.
        ("1002", None, ""),
        ("short", None, ""),
        ("ann", Some("/other"), "/other"),
    ] {
        let config = ImageConfig {
            user: user.to_owned(),
            environment: home.map(|home: &str| ("HOME".to_owned(), home.to_owned())).into_iter().collect(),
            ..ImageConfig::default()
        };
        assert_eq!(own(&files, &config), [packages(folder)], "{user}");
    }
}

#[test]
fn variables_move_where_python_imports_from() {
    let files = [
        ("base/lib/python3.11/site-packages/x.py", "#"),
        ("one/x.py", "#"),
        ("two/x.py", "#"),
        ("home/lib/python3.11/os.py", "#"),
        ("home/lib/python3.11/site-packages/x.py", "#"),
    ];
    let with = |variables: &[(&str, &str)]| own(&files, &config(variables, &[]));
    assert_eq!(with(&[("PYTHONUSERBASE", "/base")]), ["/base/lib/python3.11/site-packages"]);
    assert_eq!(with(&[("PYTHONUSERBASE", "/base"), ("PYTHONNOUSERSITE", "")]), ["/base/lib/python3.11/site-packages"]);
    assert_eq!(with(&[("PYTHONUSERBASE", "/base"), ("PYTHONNOUSERSITE", "x")]), [""; 0]);
    assert_eq!(with(&[("PYTHONPATH", "/two::/one:/none:/two")]), ["/two", "/", "/one"]);
    assert_eq!(with(&[("PYTHONPATH", "")]), [""; 0]);
    assert_eq!(with(&[("PYTHONHOME", "/home:/other")]), ["/home/lib/python3.11/site-packages"]);
    // A file whose name shows no version has that of the library below the prefix.
    let copied = [
        ("opt/bin/python", "elf"),
        ("home/lib/python3.11/os.py", "#"),
        ("home/lib/python3.11/site-packages/x.py", "#"),
    ];
    let with = |home: &str, command: &[&str]| {
        python_of(&image(&copied), Some(&config(&[("PYTHONHOME", home)], command))).unwrap().minor
    };
    assert_eq!(with("/home:/other", &["/opt/bin/python"]), Some(11));
    assert_eq!(with("/other:/home", &["/opt/bin/python"]), None);
    assert_eq!(with("/home", &["/opt/bin/python", "-E", "-c", "1"]), None);
    let path = python_of(&image(&[&SYSTEM[..], &files].concat()), Some(&config(&[("PYTHONPATH", "/one")], &[])));
    let path: Vec<_> = path.unwrap().path.iter().map(ToString::to_string).collect();
    assert_eq!(path, ["/one", "/usr/lib/python3.11", "/usr/lib/python3/dist-packages"]);
}

#[test]
fn lines_of_path_files_name_folders_or_run_code() {
    let packages = "usr/lib/python3/dist-packages";
    let [a, b, hidden, link, text, tab] =
        ["a.pth", "b.pth", ".c.pth", "d.pth", "e.txt", "f.pth"].map(|name| format!("{packages}/{name}"));
    let files = [
        (&*a, "import\tx\n/srv/a \n/srv/a\n#/srv/c\n\n\nimport y\n"),
        (&*b, "importer\n/srv/b"),
        (&*hidden, "/srv/c\n"),
        (&*link, "-> /missing"),
        (&*text, "/srv/c\n"),
        (&*tab, "import\tx\n"),
        ("usr/lib/python3/dist-packages/#/srv/c/x.py", "#"),
        ("srv/a/x.py", "#"),
        ("srv/b/x.py", "#"),
        ("srv/c/x.py", "#"),
        ("usr/lib/python3/dist-packages/importer/x.py", "#"),
    ];
    let folders = own(&files, &config(&[], &[]));
    assert_eq!(folders, ["/srv/c", "/srv/a", &format!("/{packages}/importer"), "/srv/b"]);
    // Since 3.13 and in later corrections of older releases, names that begin with a dot are left out.
    let newer = ("usr/lib/python3.11/site.py", "dist-packages\n not name.startswith(\".\")");
    let folders = own(&[&files[..], &[newer]].concat(), &config(&[], &[]));
    assert_eq!(folders, ["/srv/a", &format!("/{packages}/importer"), "/srv/b"]);
    let hooks = python_of(&image(&[&SYSTEM[..], &files].concat()), None).unwrap().hooks;
    assert_eq!(hooks, [&a, &link, &tab].map(|path| ImagePath::from(&**path)));
}

#[test]
fn debian_looks_below_usr_local_first_and_red_hat_in_lib64() {
    let debian = [
        ("usr/local/lib/python3.11/dist-packages/x.py", "#"),
        ("usr/lib/python3.11/dist-packages/x.py", "#"),
        ("usr/lib/python3.11/site-packages/x.py", "#"),
    ];
    let folders = python(&[&SYSTEM[..], &debian].concat(), &config(&[], &[])).1;
    assert_eq!(
        folders,
        [
            "/usr/local/lib/python3.11/dist-packages",
            "/usr/lib/python3/dist-packages",
            "/usr/lib/python3.11/dist-packages"
        ]
    );
    let own = [("usr/bin/python3", "-> python3.11"), ("usr/bin/python3.11", "elf"), ("usr/lib/python3.11/os.py", "#")];
    assert_eq!(
        python(&[&own[..], &debian[..1]].concat(), &config(&[], &[])).1,
        ["/usr/local/lib/python3.11/dist-packages"]
    );
    let site = ["/usr/lib/python3.11/site-packages".to_owned()];
    assert_eq!(python(&[&own[..], &debian[2..]].concat(), &config(&[], &[])).1, site);
    let red_hat = [
        ("usr/lib64/python3.11/os.py", "#"),
        ("usr/lib64/python3.11/lib-dynload/x.so", "elf"),
        ("usr/lib64/python3.11/site-packages/x.py", "#"),
        ("usr/lib/python3.11/site-packages/x.py", "#"),
    ];
    let python = python_of(&image(&[&own[..2], &red_hat].concat()), None).unwrap();
    let path: Vec<_> = python.path.iter().map(ToString::to_string).collect();
    assert_eq!(
        path,
        [
            "/usr/lib64/python3.11",
            "/usr/lib64/python3.11/lib-dynload",
            "/usr/lib64/python3.11/site-packages",
            "/usr/lib/python3.11/site-packages"
        ]
    );
    // If both names are one directory, the name without 64 is used.
    let merged = [("usr/lib64", "-> lib"), ("usr/lib/python3.11/lib-dynload/x.so", "elf")];
    let python = python_of(&image(&[&own[..], &merged].concat()), None).unwrap();
    assert_eq!(python.path[0].to_string(), "/usr/lib/python3.11");
}

#[test]
fn a_virtual_environment_is_marked_beside_the_name_that_was_called_or_above() {
    let packages = ("opt/venv/lib/python3.11/site-packages/x.py", "#");
    for mark in ["opt/venv/pyvenv.cfg", "opt/venv/bin/pyvenv.cfg"] {
        let files = [("opt/venv/bin/python", "-> /usr/bin/python3"), (mark, " HOME = /usr/bin \nnothing\n"), packages];
        let folders = python(&[&SYSTEM[..], &files].concat(), &config(&[("PATH", "/opt/venv/bin")], &[])).1;
        let expected = ["/opt/venv/lib/python3.11/site-packages", "/usr/lib/python3/dist-packages"];
        assert_eq!(folders, expected, "{mark}");
    }
    // A directory name may contain the separator of keys and values.
    let files = [
        ("opt/a=b/bin/python3.9", "elf"),
        ("opt/a=b/lib/python3.9/os.py", "#"),
        ("opt/venv/bin/python", "-> /opt/a=b/bin/python3.9"),
        ("opt/venv/pyvenv.cfg", "home = /opt/a=b/bin"),
    ];
    let found = python_of(&image(&files), Some(&config(&[("PATH", "/opt/venv/bin")], &[]))).unwrap();
    assert_eq!(found.path, [ImagePath::from("opt/a=b/lib/python3.9")]);
    // Without a home, the prefix follows from the file that runs.
    let files = [
        ("opt/venv/bin/python", "-> /usr/bin/python3"),
        ("opt/venv/pyvenv.cfg", "Include-System-Site-Packages=TRUE"),
        packages,
    ];
    let folders = python(&[&SYSTEM[..], &files].concat(), &config(&[("PATH", "/opt/venv/bin")], &[])).1;
    assert_eq!(folders, ["/opt/venv/lib/python3.11/site-packages", "/usr/lib/python3/dist-packages"]);
}

#[test]
fn the_standard_library_is_above_the_programs() {
    let files = [
        ("opt/python/tools/bin/python3", "elf"),
        ("opt/python/lib/python3.9/os.py", "#"),
        ("opt/python/tools/lib/x", ""),
    ];
    let path = config(&[("PATH", "/opt/python/tools/bin")], &[]);
    let paths = |files: &[(&str, &str)]| {
        let python = python_of(&image(files), Some(&path)).unwrap();
        (python.minor, python.path.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(paths(&files), (Some(9), vec!["/opt/python/lib/python3.9".to_owned()]));
    let library = ("opt/python/lib/python3.9/random.py", "#");
    assert_eq!(paths(&[files[0], library]), (None, vec![]), "a folder without os.py");
}
