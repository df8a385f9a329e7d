use super::*;

fn of(text: &str) -> Vec<String> {
    let imports = PythonImports::read(text.as_bytes());
    imports
        .iter()
        .map(|PythonImport { condition, module, names, .. }| {
            let condition = match condition {
                ImportCondition::None => String::new(),
                ImportCondition::IsProgram => "main? ".to_owned(),
                ImportCondition::Unset(name) => format!("unless {name}? "),
                ImportCondition::Found(name) => format!("where {name}? "),
            };
            format!("{condition}{module} {names}").trim_end().to_owned()
        })
        .collect()
}

#[test]
fn imports_that_run_whenever_the_file_does() {
    for (code, expected) in [
        ("import a\nimport b.c as d, e\n", &["a", "b.c", "e"][..]),
        ("from a.b import (  # text\n    c,\n    d as e,\n)\n", &["a.b c d"]),
        ("from . import _C\nfrom ..x import *\n", &[". _C", "..x *"]),
        ("'''\nimport a\n'''\nx = \"\"\"\nimport b\"\"\"\nimport c\n", &["c"]),
        ("import a, torch.nn; import b\nimport os\nimport torch\n", &["a", "torch.nn", "b"]),
        ("from a \\\n    import b\n", &["a b"]),
        ("def f():\n    import a\nclass C:\n    import b\nfor x in y:\n    import c\nimport d\n", &["d"]),
        ("with lock:\n    import a\nwith contextlib.suppress(ImportError):\n    import b\n", &["a"]),
        ("import a\r\nimport b\r\n", &["a", "b"]),
        ("if x: import a\n", &[]),
        (
            "lib = ctypes.CDLL(\"libcudart.so\")\nctypes.cdll.LoadLibrary('libx.so.1')\n",
            &["=libcudart.so", "=libx.so.1"],
        ),
        ("ctypes.CDLL(path)\nctypes.CDLL('/opt/libx.so')\ndef f():\n    ctypes.CDLL('libx.so')\n", &[]),
    ] {
        assert_eq!(of(code), expected, "{code}");
    }
}

#[test]
fn imports_that_the_file_goes_on_without_do_not_count() {
    for (code, expected) in [
        ("try:\n    import a\nexcept ImportError:\n    a = None\nimport b\n", &["b"][..]),
        ("try:\n    import a\nexcept:\n    pass\n", &[]),
        ("try:\n    import a\nexcept ImportError as e:\n    raise ImportError('x') from e\n", &["a"]),
        ("try:\n    import a\nexcept ImportError:\n    if x:\n        raise\n", &[]),
        ("try:\n    import a\nexcept ModuleNotFoundError:\n    pass\n", &["a"]),
        ("try:\n    import a\nexcept (KeyError, ImportError):\n    pass\n", &[]),
        (
            "try:\n    import a\nexcept KeyError:\n    pass\nexcept Exception:\n    pass\nfinally:\n    import b\n",
            &["b"],
        ),
        ("try:\n    import a\nfinally:\n    import b\n", &["a", "b"]),
        ("try:\n    x()\nexcept E:\n    raise\nelse:\n    import a\nimport b\n", &["b"]),
        (
            "try:\n    import a\n    try:\n        import b\n    except ImportError:\n        pass\n    import c\n\
             except E:\n    raise\n",
            &["a", "c"],
        ),
        (
            "try:\n    import a\nexcept ImportError:\n    try:\n        import b\n    except ImportError:\n        pass\n",
            &[],
        ),
    ] {
        assert_eq!(of(code), expected, "{code}");
    }
}

#[test]
fn conditions_on_variables_that_nobody_sets() {
    let flash = "USE_ROCM = os.getenv(\"ROCM\", \"FALSE\") == \"TRUE\"\nif USE_ROCM:\n    from .amd import x\nelse:\n    \
                 import flash_attn_2_cuda as gpu\n";
    for (code, expected) in [
        (flash, &["unless ROCM? flash_attn_2_cuda"][..]),
        ("if not int(os.environ.get('OFF', '0')):\n    import a\nelse:\n    import b\n", &["unless OFF? a"]),
        ("if os.environ.get('X') is None:\n    import a\n", &["unless X? a"]),
        ("if 'X' not in os.environ:\n    import a\n", &["unless X? a"]),
        (
            "if importlib.util.find_spec(\"..x._C\", package=__package__):\n    from ..x import _C\nelse:\n    import b\n",
            &["where ..x._C? ..x _C"],
        ),
        ("HAS = find_spec('a') is not None\nif HAS:\n    import a\nif not HAS:\n    import b\n", &["where a? a"]),
        ("if find_spec(name):\n    import a\n", &[]),
        ("if os.getenv('X', '1').lower() in ('1', 'true'):\n    import a\n", &["unless X? a"]),
        ("if TYPE_CHECKING:\n    import a\nelse:\n    import b\n", &["b"]),
        (
            "if sys.platform == \"win32\":\n    import a\nelif os.name == 'nt':\n    import b\nelse:\n    import c\n",
            &["c"],
        ),
        ("if __name__ == '__main__':\n    import a\nelse:\n    import b\n", &["main? a"]),
        ("if torch.cuda.is_available():\n    import a\nelse:\n    import b\n", &[]),
        ("X = True\nX = f()\nif X:\n    import a\n", &[]),
        ("X = True\nif y:\n    X = False\nif X:\n    import a\n", &[]),
        ("if os.getenv('X') is None:\n    if os.getenv('Y') is None:\n        import a\n", &[]),
        ("if True and x:\n    import a\n", &[]),
    ] {
        assert_eq!(of(code), expected, "{code}");
    }
}

#[test]
fn code_that_opens_libraries_is_marked() {
    for (code, is_marked) in
        [("ctypes.CDLL(path)\n", true), ("sys.setdlopenflags(1)\n", true), ("import a\n", false), ("", false)]
    {
        let imports = PythonImports::read(code.as_bytes());
        assert_eq!(imports.open_libraries(), is_marked, "{code}");
    }
    assert!(PythonImports::read(b"import os\n").is_empty());
}

#[test]
fn imports_without_which_a_program_ends() {
    let required = |code: &str| {
        let imports = PythonImports::read(code.as_bytes());
        let required =
            imports.required().map(|import| format!("{} {}", import.module, import.line.unwrap_or_default()));
        required.collect::<Vec<_>>().join(", ")
    };
    for (code, expected) in [
        ("import os\nimport numpy, yaml\nfrom transformers import x\n", "numpy 2, yaml 2, transformers 3"),
        ("from . import a\nif __name__ == '__main__':\n    import b.c\n", ". 1, b.c 3"),
        ("if x:\n    import a\ndef f():\n    import b\nwith x:\n    import c\n", "c 6"),
        ("try:\n    import a\nexcept ModuleNotFoundError:\n    pass\nimport b\n", "b 5"),
        ("try:\n    import a\nexcept (ImportError, OSError):\n    a = None\nimport b\n", "b 5"),
        ("try:\n    import a\nexcept ValueError:\n    pass\n", "a 2"),
        ("try:\n    import a\nexcept ImportError as e:\n    raise RuntimeError('x') from e\n", "a 2"),
        ("try:\n    import a\nexcept:\n    sys.exit(1)\nimport b\n", ""),
        ("import a\nif not x:\n    sys.exit(1)\nimport b\n", "a 1"),
        ("import a\nsubprocess.run(['pip', 'install', 'b'])\nimport b\n", "a 1"),
        ("import a\nsys.modules['b'] = a\nimport b\n", "a 1"),
        ("import a, subprocess\nfrom x.pipeline import b\nx = f(pipeline)\nimport c\n", "a 1, x.pipeline 2, c 4"),
        ("import a\nmain(['pip3', 'install', 'b'])\nimport b\n", "a 1"),
        ("try:\n    import a\nexcept ImportError: a = None\nimport b\n", "b 4"),
        ("try: import a\nexcept ImportError: pass\nif True: import b; import c\n", "b 3, c 3"),
        ("with try_import() as found:\n    import a\nwith warnings.catch_warnings():\n    import b\n", "b 4"),
        ("def f(x: int = {'a': 1}): import a\nclass C(Exception): import b\nimport c\n", "c 3"),
        ("import numpy.a, numpy.b\nfrom numpy import c\nimport pandas\n", "numpy 1, pandas 3"),
        ("import a\nraise RuntimeError\nimport b\n", "a 1"),
        ("import pyrootutils\npyrootutils.setup_root(__file__)\nimport src\n", ""),
    ] {
        assert_eq!(required(code), expected, "{code}");
    }
    assert_eq!(of("import numpy\nimport a\n"), ["a"], "a package without libraries of CUDA");
    let program = PythonImports::read(b"import numpy\nimport a\n");
    assert_eq!(program.iter().map(|import| import.module).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn files_that_are_read() {
    for (path, size, is_read) in [
        ("usr/lib/python3/dist-packages/flash_attn/__init__.py", 100, true),
        ("opt/venv/lib/python3.11/site-packages/vllm/a/b/c.py", 100, true),
        ("opt/venv/lib/python3.11/site-packages/vllm/a/b/c/d.py", 100, false),
        ("opt/venv/lib/python3.11/site-packages/torch/__init__.py", 100, false),
        ("opt/venv/lib/python3.11/site-packages/x/__init__.py", 300 << 10, false),
        ("usr/lib/python3.11/site.py", 100, false),
        ("workspace/project/src/project/cli/train.py", 100, true),
        ("opt/node_modules/x/setup.py", 100, false),
    ] {
        assert_eq!(PythonImports::are_read_of(&path.into(), size), is_read, "{path}");
    }
}
