//! The path of a call, and what it imports.

use crate::start::PythonTarget;

use super::*;

/// `sys.path` of a call, without entries that do not exist.
fn path_of(files: &[(&str, &str)], call: &PythonCall) -> Vec<String> {
    let python = Python::of(&image(&[&SYSTEM[..], files].concat()), call).unwrap();
    python.path.iter().map(ToString::to_string).collect()
}

/// A call of the system's Python in `/work`.
fn call(target: PythonTarget) -> PythonCall {
    let config = ImageConfig { working_directory: "/work".to_owned(), ..ImageConfig::default() };
    let state = start::ProcessState::initial(&image(&[]), Some(&config));
    PythonCall { target, ..PythonCall::plain(ImagePath::from("usr/bin/python3"), state) }
}

#[test]
fn the_first_entry_is_that_of_the_program() {
    let files = [
        ("work/x.py", "#"),
        ("srv/app/train.py", "#"),
        ("usr/bin/train", "-> ../../srv/app/train.py"),
        ("srv/folder/__main__.py", "#"),
    ];
    let rest = ["/usr/lib/python3.11", "/usr/lib/python3/dist-packages"].map(ToOwned::to_owned);
    let script = |path: &str| PythonTarget::Script(ImagePath::from(path));
    for (target, first, safe) in [
        (PythonTarget::Unstated, None, None),
        (PythonTarget::Code, Some("/work"), None),
        (PythonTarget::Module("x".to_owned()), Some("/work"), None),
        (script("usr/bin/train"), Some("/srv/app"), None),
        (script("srv/folder"), Some("/srv/folder"), Some("/srv/folder")),
    ] {
        let expected =
            |first: Option<&str>| first.map(ToOwned::to_owned).into_iter().chain(rest.clone()).collect::<Vec<_>>();
        assert_eq!(path_of(&files, &call(target.clone())), expected(first), "{target:?}");
        let flags = start::PythonFlags { safe_path: true, ..start::PythonFlags::default() };
        let with_flag = PythonCall { flags, ..call(target.clone()) };
        assert_eq!(path_of(&files, &with_flag), expected(safe), "{target:?} -P");
    }
}

/// What is imported as `torch`, or why it is unknown.
fn torch(files: &[(&str, &str)], call: &PythonCall) -> Result<Option<Importable>, String> {
    let rootfs = image(&[&SYSTEM[..], files].concat());
    Python::of(&rootfs, call).unwrap().import(&rootfs, "torch").map(|import| import.found).map_err(|gap| gap.why)
}

#[test]
fn a_package_is_preferred_to_a_module_and_both_to_a_mere_directory() {
    const PACKAGES: &str = "usr/lib/python3/dist-packages";
    let [init, extension, tagged, other, source, bytes, data] = [
        "torch/__init__.py",
        "torch.so",
        "torch.cpython-311-x86_64-linux-gnu.so",
        "torch.cpython-312-x86_64-linux-gnu.so",
        "torch.py",
        "torch.pyc",
        "torch/data.txt",
    ]
    .map(|name| format!("{PACKAGES}/{name}"));
    let folder = ImagePath::from(format!("{PACKAGES}/torch").as_str());
    let module = |file: &String| Some(Importable::Module(ImagePath::from(file.as_str())));
    let package = Some(Importable::Package(folder.clone(), ImagePath::from(init.as_str())));
    for (files, expected) in [
        (&[&init, &extension, &tagged, &source, &bytes][..], package),
        (&[&extension, &tagged, &source, &data], module(&tagged)),
        (&[&extension, &other, &source, &data], module(&extension)),
        (&[&other, &source, &bytes, &data], module(&source)),
        (&[&other, &bytes, &data], module(&bytes)),
        (&[&other, &data], Some(Importable::Namespace(folder.clone()))),
        (&[&other], None),
    ] {
        let files: Vec<_> = files.iter().map(|path| (path.as_str(), "#")).collect();
        assert_eq!(torch(&files, &call(PythonTarget::Unstated)).unwrap(), expected, "{files:?}");
    }
}

#[test]
fn an_entry_with_code_wins_over_a_directory_in_an_earlier_one() {
    let files = [("work/torch/data.txt", "#"), ("usr/lib/python3/dist-packages/torch/__init__.py", "#")];
    let found = torch(&files, &call(PythonTarget::Code)).unwrap().unwrap();
    assert_eq!(found.path().to_string(), "/usr/lib/python3/dist-packages/torch");
    let found = torch(&[("work/torch.py", "#"), files[1]], &call(PythonTarget::Code)).unwrap().unwrap();
    assert_eq!(found.path().to_string(), "/work/torch.py");
}

#[test]
fn finders_of_editable_packages_come_last() {
    let hook = (
        "usr/lib/python3/dist-packages/__editable__.torch-2.9.pth",
        "import __editable___torch_2_9_finder; __editable___torch_2_9_finder.install()",
    );
    let finder = (
        "usr/lib/python3/dist-packages/__editable___torch_2_9_finder.py",
        "from x import y\nMAPPING: dict[str, str] = {'functorch': '/src/functorch', 'torch': '/src/torch'}\n",
    );
    let source = ("src/torch/__init__.py", "#");
    let any = call(PythonTarget::Code);
    let found = torch(&[hook, finder, source], &any).unwrap().unwrap();
    assert_eq!(found.path().to_string(), "/src/torch");
    let found = torch(&[hook, finder, source, ("work/torch.py", "#")], &any).unwrap().unwrap();
    assert_eq!(found.path().to_string(), "/work/torch.py");
    let broken = (finder.0, "MAPPING = make()\n");
    assert!(torch(&[hook, broken, source], &any).unwrap_err().contains("no mapping"));
}

#[test]
fn archives_are_not_read() {
    let packages = ("usr/lib/python3/dist-packages/torch/__init__.py", "#");
    let variables = |value: &str| {
        let mut call = call(PythonTarget::Code);
        call.state.variables.insert("PYTHONPATH".to_owned(), Ok(value.to_owned()));
        call
    };
    let files = [packages, ("srv/code.zip", "PK"), ("srv/idna-3.egg", "PK"), ("usr/lib/python311.zip", "PK")];
    assert!(torch(&files, &variables("/srv/code.zip")).unwrap_err().contains("/srv/code.zip"));
    assert!(torch(&files, &variables("/srv/idna-3.egg:/srv/none.zip")).unwrap().is_some());
    let folder = call(PythonTarget::Script(ImagePath::from("srv/folder")));
    assert!(torch(&[packages, ("srv/folder/PEX-INFO", "{}")], &folder).unwrap_err().contains("/srv/folder"));
    let app = call(PythonTarget::Script(ImagePath::from("srv/app.pex")));
    assert!(torch(&[packages, ("srv/app.pex", "PK")], &app).unwrap_err().contains("/srv/app.pex"));
}

#[test]
fn a_file_for_the_program_has_the_whole_path() {
    let lines = "../lib/python3.11\n# a comment\n../../srv # code\nimport os\n";
    let files = [("usr/bin/python3._pth", lines), ("srv/x.py", "#")];
    let mut isolated = call(PythonTarget::Code);
    isolated.state.variables.insert("PYTHONPATH".to_owned(), Ok("/work".to_owned()));
    assert_eq!(path_of(&files, &isolated), ["/usr/lib/python3.11", "/srv"]);
    let lines = lines.to_owned() + "import site\n";
    let files = [("usr/bin/python3.11._pth", lines.as_str()), ("srv/x.py", "#"), ("work/x.py", "#")];
    assert_eq!(path_of(&files, &isolated), ["/usr/lib/python3.11", "/srv"]);
}
