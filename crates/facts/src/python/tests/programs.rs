//! What programs do to the path and to variables.

use crate::start::PythonTarget;

use super::*;

/// The Python that runs a program in `/app`, with modules beside it. The other files of the image end it.
fn run(files: &[(&str, &str)], target: PythonTarget) -> Python {
    let config =
        ImageConfig { working_directory: "/app".to_owned(), ..config(&[("NCCL_ALGO", "Ring"), ("X", "")], &[]) };
    let rootfs = image(&[&SYSTEM[..], files].concat());
    let state = start::ProcessState::initial(&rootfs, Some(&config));
    let call = PythonCall { target, ..PythonCall::plain(ImagePath::from("usr/bin/python3"), state) };
    Python::of(&rootfs, &call).unwrap()
}

fn script() -> PythonTarget {
    PythonTarget::Script(ImagePath::from("app/train.py"))
}

/// Folders with and without a torch.
const FOLDERS: [(&str, &str); 3] =
    [("x/torch/__init__.py", "#"), ("y/z.py", "#"), ("usr/lib/python3/dist-packages/torch/__init__.py", "#")];

/// The entries of the path before and behind the standard library's; `None` if the program is not understood.
fn path_of(code: &str) -> Option<String> {
    let python = run(&[&FOLDERS[..], &[("app/train.py", code), ("app/lib/z.py", "#")]].concat(), script());
    let modules = python.modules.as_ref().unwrap();
    let standard = ["/usr/lib/python3.11", "/usr/lib/python3/dist-packages"];
    let own = python.path.iter().map(ToString::to_string);
    let own: Vec<_> = own.map(|path| if standard.contains(&&*path) { "-".to_owned() } else { path }).collect();
    modules.opaque.is_empty().then(|| own.join(" "))
}

#[test]
fn changes_of_the_path_before_the_import_of_torch_are_followed() {
    for (code, expected) in [
        ("import sys\nsys.path.insert(0, '/x')\nimport torch\n", "/x /app - -"),
        ("import sys; sys.path.insert(0, '/x'); import torch", "/x /app - -"),
        ("import os, torch\nimport sys\nsys.path.insert(0, find())\n", "/app - -"),
        ("import torchvision\nsys.path.append('/x')\n", "/app - - /x"),
        (
            "HERE = os.path.dirname(os.path.abspath(__file__))\nsys.path.append(os.path.join(HERE, 'lib'))\n",
            "/app - - /app/lib",
        ),
        ("sys.path.insert(\n    0,  # first\n    '/x',\n)\n", "/x /app - -"),
        ("\"\"\"Text.\n\nsys.path.clear()\n\"\"\"\nimport torch\n", "/app - -"),
        ("import sys, \\\n    torch\nsys.path.clear()\n", "/app - -"),
        ("text = 'it\\'s # é'\nsys.path.append('/x')\n", "/app - - /x"),
        ("text = f\"{'\"'}\"\nsys.path.insert(0,\n    '/x')\n", "/x /app - -"),
        ("text = 'a # b'  # sys.path.clear()\nprint(sys.path)\nif sys.path[0] == '/x': pass\n", "/app - -"),
        ("try:\n    import torch\nexcept ImportError:\n    sys.path.clear()\n", "/app - -"),
        ("def f():\n    import torch\nsys.path.insert(0, '/x')\n", "/x /app - -"),
        ("if TYPE_CHECKING:\n    import torch\nsys.path.insert(0, '/x')\n", "/x /app - -"),
        ("import sys as s\ns.path.insert(0, '/x')\n", "/x /app - -"),
        ("from sys import path\npath.insert(0, '/x')\n", "/x /app - -"),
        ("def add(folder):\n    sys.path.insert(0, folder)\nadd('/x')\n", "/x /app - -"),
        ("for folder in ('x', 'y'):\n    sys.path.append('/' + folder)\n", "/app - - /x /y"),
        ("if '/x' not in sys.path:\n    sys.path.insert(0, '/x')\n", "/x /app - -"),
        ("if '/app' not in sys.path:\n    sys.path.insert(0, '/x')\n", "/app - -"),
        ("if a:\n    sys.path.insert(0, '/y')\n", "/y /app - -"),
        ("sys.path.append(find())\n", "/app - -"),
        ("def f():\n    sys.path.clear()\n", "/app - -"),
        ("from pathlib import Path\nsys.path.insert(0, str(Path('/x')))\n", "/x /app - -"),
    ] {
        assert_eq!(path_of(code).as_deref(), Some(expected), "{code}");
    }
}

#[test]
fn other_changes_of_the_path_are_not_understood() {
    for code in [
        "sys.path.insert(0, sys.argv[1])",
        "ROOT = find()\nsys.path.insert(0, ROOT)",
        "ROOT = '/x'\nROOT = find()\nsys.path.insert(0, ROOT)",
        "ROOT = '/x'\nif a:\n    ROOT = '/y'\nsys.path.insert(0, ROOT)",
        "if a:\n    sys.path.insert(0, '/x')",
        "if a:\n    import torch\nsys.path.insert(0, '/x')",
        "def f():\n    sys.path.insert(0, '/x')\ng(f)",
        "def f():\n    if a:\n        return\n    sys.path.insert(0, '/x')\nf()",
        "sys.path = []",
        "sys.path[:] = ['/x']",
        "del sys.path[0]",
        "sys.path.pop(0)",
        "sys.modules['torch'] = fake",
        "sys.meta_path.insert(0, Finder())",
        "site.addsitedir(folder)",
    ] {
        assert_eq!(path_of(code), None, "{code}");
    }
}

/// What a program does to variables: `NAME=VALUE`, `-NAME` for one that is removed, `NAME?` for one that is unknown, and `?`.
fn variables_of(files: &[(&str, &str)], target: PythonTarget) -> String {
    let changed = run(&[&FOLDERS[..], files].concat(), target).changed;
    let texts = changed.values.iter().map(|(name, (value, _))| match value {
        Ok(Some(value)) => format!("{name}={value}"),
        Ok(None) => format!("-{name}"),
        Err(_) => format!("{name}?"),
    });
    texts.chain(changed.gap.map(|_| "?".to_owned())).collect::<Vec<_>>().join(" ")
}

#[test]
fn variables_that_a_program_sets_are_followed() {
    for (code, expected) in [
        ("os.environ['NCCL_A'] = '1'", "NCCL_A=1"),
        ("os.environ['NCCL_A'] = str(1)", "NCCL_A=1"),
        ("os.environ['NCCL_A'] = '''1'''", "NCCL_A?"),
        ("from os import environ as e\ne['NCCL_A'] = '1'", "NCCL_A=1"),
        ("os.putenv('NCCL_A', '1')", "NCCL_A=1"),
        ("os.environ.setdefault('NCCL_A', '1')\nos.environ.setdefault('NCCL_ALGO', 'Tree')", "NCCL_A=1"),
        ("os.environ.setdefault('RANK', '0')", ""),
        ("os.environ.update({'NCCL_A': '1', 'NCCL_B': b}, NCCL_C='3')", "NCCL_A=1 NCCL_B? NCCL_C=3"),
        ("ALL = {'NCCL_A': '1'}\nos.environ.update(ALL)", "NCCL_A=1"),
        ("ALL = {'NCCL_A': '1'}\nfor k, v in ALL.items():\n    os.environ[k] = v", "NCCL_A=1"),
        ("def f():\n    for k in ['NCCL_A', 'NCCL_B']:\n        os.environ[k] = '1'\ng(f)", "NCCL_A? NCCL_B?"),
        ("os.environ.update(load())", "?"),
        ("os.environ[name()] = '1'", "?"),
        ("del os.environ['NCCL_ALGO']\nold = os.environ.pop('NCCL_B', None)", "-NCCL_ALGO -NCCL_B"),
        ("os.environ['NCCL_A'] = args.a", "NCCL_A?"),
        ("if args.a:\n    os.environ['NCCL_A'] = '1'", "NCCL_A?"),
        ("if args.a:\n    os.environ['NCCL_ALGO'] = 'Ring'", ""),
        (
            "if 'NCCL_A' not in os.environ:\n    os.environ['NCCL_A'] = '1'\nelse:\n    os.environ['NCCL_B'] = '1'",
            "NCCL_A=1",
        ),
        ("if os.environ.get('NCCL_ALGO') == 'Tree' or os.getenv('X'):\n    os.environ['NCCL_A'] = '1'", ""),
        ("if 'RANK' in os.environ:\n    os.environ['NCCL_A'] = '1'", "NCCL_A?"),
        ("def f():\n    os.environ['NCCL_A'] = '1'\nif __name__ == '__main__':\n    f()", "NCCL_A=1"),
        ("def f():\n    os.environ['NCCL_A'] = '1'", ""),
        ("@app.command()\ndef f():\n    os.environ['NCCL_A'] = '1'", "NCCL_A?"),
        ("@contextmanager\ndef f():\n    os.environ['NCCL_A'] = '1'", ""),
        ("os.environ['NCCL_A'] = '1'\nos.execv(sys.executable, sys.argv)", "NCCL_A=1 ?"),
        ("def f(k, v):\n    os.environ[k] = v\nf('NCCL_A', '1')\nf('NCCL_B', '2')", "NCCL_A=1 NCCL_B=2"),
        ("def f(a, v='1', k='NCCL_A'):\n    os.environ[k] = v\nf(1)\nf(1, k='NCCL_B', v='2')", "NCCL_A=1 NCCL_B=2"),
        ("def f(a, k='NCCL_A'):\n    os.environ[k] = a\nf(b)\nf(k='NCCL_B', a='2')", "NCCL_A? NCCL_B=2"),
        ("def f(k='NCCL_A'):\n    os.environ[k] = '1'\nf(*b)", "?"),
        ("def f(k='NCCL_A'):\n    os.environ[k] = '1'\ng(partial(f, b))", "?"),
        (
            "A = '1'\nB = '1'\ndef f():\n    global A\n    A = '2'\n    B = '2'\nf()\nos.environ.update(NCCL_A=A, NCCL_B=B)",
            "NCCL_A=2 NCCL_B=1",
        ),
        ("def f(x):\n    f(x)\n    f(x + x)\n    os.environ['NCCL_A'] = x\nf('1')", "NCCL_A=1"),
        (
            "try:\n    os.environ['NCCL_A'] = '1'\n    find()\n    os.environ['NCCL_B'] = '1'\nexcept Error:\n    pass",
            "NCCL_A=1 NCCL_B?",
        ),
        (
            "try:\n    find()\n    os.environ['NCCL_A'] = '1'\nfinally:\n    os.environ['NCCL_B'] = '1'",
            "NCCL_A=1 NCCL_B=1",
        ),
        (
            "try:\n    find()\nexcept Error:\n    pass\nelse:\n    os.environ['NCCL_A'] = '1'\nos.environ['NCCL_B'] = '1'",
            "NCCL_A? NCCL_B=1",
        ),
        (
            "try:\n    if 'NCCL_ALGO' not in os.environ:\n        pass\n    else:\n        os.environ['NCCL_A'] = '1'\nexcept Error:\n    pass",
            "NCCL_A=1",
        ),
        ("while a():\n    break\nos.environ['NCCL_A'] = '1'", "NCCL_A=1"),
        ("def f():\n    for a in b:\n        return\n    os.environ['NCCL_A'] = '1'\nf()", "NCCL_A?"),
        ("class A:\n    def f(self):\n        os.environ['NCCL_A'] = '1'\nA().f()", "NCCL_A?"),
        ("dist.init_process_group()\nos.environ['NCCL_A'] = '1'", "NCCL_A?"),
        ("env = dict(os.environ)\nenv['NCCL_A'] = '1'\nrun(env={**os.environ, 'NCCL_B': '1'})", ""),
        ("print('''\nos.environ['NCCL_A'] = '1'\n''')\n# os.environ['NCCL_A'] = '1'", ""),
    ] {
        assert_eq!(variables_of(&[("app/train.py", code)], script()), expected, "{code}");
    }
}

#[test]
fn modules_of_the_job_are_followed() {
    let set = "import os\nos.environ['NCCL_A'] = '1'\n";
    let function = "import os\ndef f():\n    os.environ['NCCL_A'] = '1'\n";
    for (program, module, text, expected) in [
        ("import env", "app/env.py", set, "NCCL_A=1"),
        ("from lib.env import f\nf()", "app/lib/env.py", function, "NCCL_A=1"),
        ("from lib import env\nenv.f()", "app/lib/env.py", function, "NCCL_A=1"),
        ("import lib.env as e\ne.f()", "app/lib/env.py", function, "NCCL_A=1"),
        ("from lib.env import *\nf()", "app/lib/env.py", function, "NCCL_A=1"),
        ("from lib.env import f", "app/lib/env.py", function, "NCCL_A?"),
        (
            "import env\nenv.f()",
            "app/env.py",
            "import os\nA = {'NCCL_A': '1'}\ndef f():\n    os.environ.update(A)\n",
            "NCCL_A=1",
        ),
        ("try:\n    import env\nexcept ImportError:\n    pass", "app/env.py", set, "NCCL_A=1"),
        ("def f():\n    import env", "app/env.py", set, ""),
        (
            "from dotenv import load_dotenv\nload_dotenv()",
            "app/.env",
            "export NCCL_A='1'\nNCCL_ALGO=Tree\n",
            "NCCL_A=1",
        ),
        ("import dotenv\ndotenv.load_dotenv('/y/.env', override=True)", "y/.env", "NCCL_ALGO=Tree\n", "NCCL_ALGO=Tree"),
        ("import dotenv\ndotenv.load_dotenv(find())", "y/.env", "", "?"),
    ] {
        assert_eq!(variables_of(&[("app/train.py", program), (module, text)], script()), expected, "{program}");
    }
    let package = [
        ("app/job/__init__.py", set),
        ("app/job/train.py", "from .env import f\nf()\n"),
        ("app/job/env.py", "import os\ndef f():\n    os.environ['NCCL_B'] = '1'\n"),
    ];
    assert_eq!(variables_of(&package, PythonTarget::Module("job.train".to_owned())), "NCCL_A=1 NCCL_B=1");
    assert_eq!(variables_of(&[], PythonTarget::Command(set.to_owned())), "NCCL_A=1");
}

#[test]
fn libraries_that_a_program_opens_before_torch_are_noted() {
    for (code, expected) in [
        ("import ctypes\nctypes.CDLL('libnccl.so.2')", &[("libnccl.so.2", false)][..]),
        (
            "from ctypes import CDLL, RTLD_GLOBAL\na = CDLL('/x/libnccl.so.2', mode=RTLD_GLOBAL)",
            &[("/x/libnccl.so.2", true)],
        ),
        ("import ctypes\nctypes.cdll.LoadLibrary('libnccl.so.2')", &[("libnccl.so.2", false)]),
        ("import ctypes, torch\nctypes.CDLL('libnccl.so.2')", &[]),
        ("import ctypes\nctypes.CDLL(None)\nif a:\n    ctypes.CDLL('libnccl.so.2')", &[]),
    ] {
        let opened = run(&[&FOLDERS[..], &[("app/train.py", code)]].concat(), script()).opened;
        let opened: Vec<_> = opened.iter().map(|(library, is_global)| (library.as_str(), *is_global)).collect();
        assert_eq!(opened, expected, "{code}");
    }
}

#[test]
fn startup_code_sets_variables() {
    const PACKAGES: &str = "usr/lib/python3/dist-packages";
    for (file, text) in [
        ("sitecustomize.py", "import os\nos.environ['NCCL_A'] = '1'\n"),
        ("x.pth", "import os; os.environ['NCCL_A'] = '1'\n"),
    ] {
        let file = format!("{PACKAGES}/{file}");
        assert_eq!(variables_of(&[(&file, text)], PythonTarget::Code), "NCCL_A=1", "{file}");
    }
}

#[test]
fn a_program_costs_little_whatever_it_says() {
    let nested = (0..600).map(|depth| " ".repeat(depth) + "if a:\n").collect::<String>();
    let calls: Vec<_> = (0..60).map(|n| format!("def f{n}(x):\n    f{m}(x)\n    f{m}(x + x)\n", m = n + 1)).collect();
    let lines = "x = x + x\n".repeat(200);
    for (code, expected) in [
        (nested + "pass\n", "a part is left out"),
        (calls.concat() + "f0('1')\n", "--limit python_steps"),
        ("x = 'a'\n".to_owned() + &lines, "--limit python_steps"),
        ("if a:".repeat(20_000), "all is followed"),
        ("os.environ['A'] = '1'\n".repeat(10_000), "all is followed"),
        ("x = {1: 2}\nx = {(x): 1}\n".repeat(1_000), "all is followed"),
    ] {
        let end = match run(&[("app/train.py", &code)], script()).modules {
            Ok(modules) if modules.opaque.is_empty() => "all is followed".to_owned(),
            Ok(_) => "a part is left out".to_owned(),
            Err(gap) => gap.why,
        };
        assert!(end.contains(expected), "{}: {end}", code.chars().take(20).collect::<String>());
    }
}
