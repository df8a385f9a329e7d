//! Libraries that `torch/__init__.py` loads itself, in addition to the dependencies of its libraries. Each release does
//! so differently, and its source lists the libraries; this module reads the image's own copy.

use super::super::pattern;

pattern!(LOAD, r"(?s)\ndef _load_global_deps\(.*?\n(?:if|class|def|import|from|#) ");
pattern!(HELPER, r"(?s)\ndef _preload_cuda_deps\(.*?\n(?:if|class|def|import|from|#) ");
// _preload_cuda_deps("nvjitlink", "libnvJitLink.so.*[0-9]", required=False); later renamed to _preload_cuda_lib.
pattern!(CALL, r#"_preload_cuda_\w+\(\s*['"]([\w/]+)['"],\s*['"](lib[^'"]+)['"]\s*,?\s*(required=False)?"#);
// Later in one call: _preload_cuda_deps(required=False).
pattern!(CALL_FOR_ALL, r"_preload_cuda_deps\((?:err)?(?:, )?(required=False)?\)");
// A dictionary; in later releases a list of pairs.
pattern!(LIST, r"(?s)cuda_libs\b[^=\n]*= [\[{](.*?)\n *[\]}]");
pattern!(ENTRY, r#"['"]([\w/]+)['"][:,] ['"](lib[^'"]+)['"]"#);
pattern!(IN_MAPS, r#"if ['"]([^'"]+)['"] not in _maps"#);
// 1.13: cublas_path = os.path.join(nvidia_path, 'cublas', 'lib', 'libcublas.so.11')
pattern!(PATH, r"os\.path\.join\(nvidia_path, '(\w+)', 'lib', '(lib[^']+)'\)");
pattern!(IN_ERROR, r#"if ['"](lib[^'"]+)['"] not in err"#);

/// A library that is loaded from NVIDIA's wheels, by directory and by the shell pattern of its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Preload {
    pub(super) folder: String,
    pub(super) pattern: String,
    /// True when the import fails without it.
    pub(super) required: bool,
}

/// The actions of one release's `_load_global_deps`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Recipe {
    /// After `libtorch_global_deps.so` is loaded, if a mapped path contains this string: loads these, up to the first
    /// failure.
    pub(super) afterwards: Option<(String, Vec<Preload>)>,
    /// If it cannot be loaded and the error contains one of these strings: loads the libraries below, then tries again.
    pub(super) errors: Vec<String>,
    pub(super) otherwise: Vec<Preload>,
    /// True when a library may also be in `nvidia/cuNN/lib`, as since CUDA 13.
    pub(super) in_toolkit: bool,
    /// True when a library may also be in a directory next to `nvidia`.
    pub(super) beside: bool,
}

/// Parses the text of `torch/__init__.py`; `None` if it has no `_load_global_deps`.
pub(super) fn recipe(text: &[u8]) -> Option<Recipe> {
    let function = LOAD.find(text)?.as_bytes();
    let border = memchr::memmem::find(function, b"except OSError").unwrap_or(function.len());
    let (attempt, failure) = function.split_at(border);
    let calls = |part: &[u8]| CALL.captures_iter(part).map(|captures| preload(&captures)).collect::<Vec<_>>();
    let listed = LIST.captures(text).and_then(|captures| captures.get(1));
    let mut all: Vec<Preload> = match listed {
        Some(list) => ENTRY.captures_iter(list.as_bytes()).map(|captures| preload(&captures)).collect(),
        // Release 1.13 lists the libraries in the body of _preload_cuda_deps.
        None => PATH.captures_iter(text).map(|captures| preload(&captures)).collect(),
    };
    let errors = match IN_ERROR.captures(failure) {
        Some(captures) => vec![String::from_utf8_lossy(&captures[1]).into_owned()],
        None => all.iter().filter_map(|entry| entry.pattern.split('.').next()).map(ToOwned::to_owned).collect(),
    };
    all.extend(HELPER.find(text).iter().flat_map(|helper| calls(helper.as_bytes())));
    let afterwards = IN_MAPS.captures(attempt).map(|captures| {
        let mut preloads = calls(attempt);
        if let Some(call) = CALL_FOR_ALL.captures(attempt) {
            let is_optional = call.get(1).is_some();
            preloads.extend(all.iter().cloned().map(|one| Preload { required: one.required && !is_optional, ..one }));
        }
        (String::from_utf8_lossy(&captures[1]).into_owned(), preloads)
    });
    all.extend(calls(failure));
    let has = |what: &[u8]| memchr::memmem::find(text, what).is_some();
    Some(Recipe {
        afterwards,
        errors,
        otherwise: all,
        in_toolkit: has(b"f\"cu{"),
        beside: has(b"os.path.join(path, lib_folder, \"lib\", lib_name)"),
    })
}

fn preload(captures: &regex::bytes::Captures<'_>) -> Preload {
    let text = |index: usize| captures.get(index).map(|found| String::from_utf8_lossy(found.as_bytes()).into_owned());
    Preload {
        folder: text(1).unwrap_or_default(),
        pattern: text(2).unwrap_or_default(),
        required: captures.get(3).is_none(),
    }
}

/// Returns true when a name matches a shell pattern of `*` and `[0-9]`, the only wildcards that these files use.
pub(super) fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let mut pattern = pattern;
    let mut name = name;
    // What follows the last `*`, and where it was tried: what an earlier one could take more, the last can take as well.
    let mut star = None;
    loop {
        if let Some(rest) = pattern.strip_prefix(b"*") {
            star = Some((rest, name));
            pattern = rest;
        } else if let Some(rest) = after_first(pattern, name) {
            (pattern, name) = rest;
        } else if pattern.is_empty() && name.is_empty() {
            return true;
        } else {
            let Some((rest, tried)) = star else { return false };
            let Some((_, next)) = tried.split_first() else { return false };
            star = Some((rest, next));
            (pattern, name) = (rest, next);
        }
    }
}

/// What is left of a pattern and a name if the first byte of the name matches.
fn after_first<'t>(pattern: &'t [u8], name: &'t [u8]) -> Option<(&'t [u8], &'t [u8])> {
    let (first, name) = name.split_first()?;
    if let Some(pattern) = pattern.strip_prefix(b"[0-9]") {
        return first.is_ascii_digit().then_some((pattern, name));
    }
    let (byte, pattern) = pattern.split_first()?;
    (byte == first).then_some((pattern, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELPER_OF_2: &str = "
def _preload_cuda_deps(lib_folder: str, lib_name: str) -> None:
    lib_path = glob.glob(os.path.join(path, 'nvidia', lib_folder, 'lib', lib_name))

";

    fn names(preloads: &[Preload]) -> Vec<String> {
        let mark = |one: &Preload| if one.required { "" } else { "?" };
        preloads.iter().map(|one| format!("{}/{}{}", one.folder, one.pattern, mark(one))).collect()
    }

    #[test]
    fn two_libraries_of_1_13() {
        let text = b"
def _preload_cuda_deps():
    cublas_path = os.path.join(nvidia_path, 'cublas', 'lib', 'libcublas.so.11')
    cudnn_path = os.path.join(nvidia_path, 'cudnn', 'lib', 'libcudnn.so.8')

def _load_global_deps():
    try:
        ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)
    except OSError as err:
        if 'libcublas.so.11' not in err.args[0]:
            raise err
        _preload_cuda_deps()
        ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)

if (USE_RTLD_GLOBAL_WITH_LIBTORCH
";
        let recipe = recipe(text).unwrap();
        assert_eq!(recipe.afterwards, None);
        assert_eq!(recipe.errors, ["libcublas.so.11"]);
        assert_eq!(names(&recipe.otherwise), ["cublas/libcublas.so.11", "cudnn/libcudnn.so.8"]);
    }

    #[test]
    fn a_dictionary_and_calls_of_2() {
        let text = HELPER_OF_2.to_owned()
            + "
def _load_global_deps() -> None:
    try:
        ctypes.CDLL(global_deps_lib_path, mode=ctypes.RTLD_GLOBAL)
        if \"nvidia/cuda_runtime/lib/libcudart.so\" not in _maps:
            return
        _preload_cuda_deps(\"cuda_nvrtc\", \"libnvrtc.so.*[0-9]\")
    except OSError as err:
        cuda_libs: dict[str, str] = {
            \"cublas\": \"libcublas.so.*[0-9]\",
            \"nccl\": \"libnccl.so.*[0-9]\",
        }
        _preload_cuda_deps(\"nvtx\", \"libnvToolsExt.so.*[0-9]\", required=False)

if (USE_RTLD_GLOBAL_WITH_LIBTORCH
";
        let recipe = recipe(text.as_bytes()).unwrap();
        let (mark, afterwards) = recipe.afterwards.unwrap();
        assert_eq!(mark, "nvidia/cuda_runtime/lib/libcudart.so");
        assert_eq!(names(&afterwards), ["cuda_nvrtc/libnvrtc.so.*[0-9]"]);
        assert_eq!(recipe.errors, ["libcublas", "libnccl"]);
        let all = ["cublas/libcublas.so.*[0-9]", "nccl/libnccl.so.*[0-9]", "nvtx/libnvToolsExt.so.*[0-9]?"];
        assert_eq!(names(&recipe.otherwise), all);
        assert!(!recipe.in_toolkit && !recipe.beside);
    }

    #[test]
    fn a_list_of_pairs_loaded_in_any_case() {
        let text = b"
def _preload_cuda_deps(err: OSError | None = None, required: bool = True) -> None:
    cuda_libs: list[tuple[str, str]] = [
        # Order matters.
        (\"cublas\", \"libcublasLt.so.*[0-9]\"),
        (\"cublas\", \"libcublas.so.*[0-9]\"),
    ]
    _preload_cuda_lib(\"nvtx\", \"libnvToolsExt.so.*[0-9]\", required=False)


# See Note [Global dependencies]
def _load_global_deps() -> None:
    try:
        if \"libcudart.so\" not in _maps:
            return
        _preload_cuda_deps(required=False)
    except OSError as err:
        _preload_cuda_deps(err)

if (USE_RTLD_GLOBAL_WITH_LIBTORCH
";
        let recipe = recipe(text).unwrap();
        let libraries = |mark| {
            let names = ["cublas/libcublasLt.so.*[0-9]", "cublas/libcublas.so.*[0-9]"];
            let mut names: Vec<_> = names.iter().map(|name| format!("{name}{mark}")).collect();
            names.push("nvtx/libnvToolsExt.so.*[0-9]?".to_owned());
            names
        };
        assert_eq!(names(&recipe.afterwards.unwrap().1), libraries("?"));
        assert_eq!(names(&recipe.otherwise), libraries(""));
    }

    #[test]
    fn patterns_of_the_shell() {
        for (pattern, name, is_match) in [
            ("libnvrtc.so.*[0-9]", "libnvrtc.so.12", true),
            ("libnvrtc.so.*[0-9]", "libnvrtc.so.", false),
            ("libnvrtc.so.*[0-9]", "libnvrtc.alt.so.12", false),
            ("libcudart.so.*[0-9].*[0-9]", "libcudart.so.11.0", true),
            ("libcudart.so.*[0-9].*[0-9]", "libcudart.so.12", false),
            ("*a*b", "aab", true),
            ("*ab*", "aaac", false),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), is_match, "{pattern} {name}");
        }
    }

    #[test]
    fn many_wildcards_take_no_longer_than_one() {
        let (answer, answered) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let pattern = "*a".repeat(100) + "b";
            let name = "a".repeat(250);
            answer.send(matches(pattern.as_bytes(), name.as_bytes()))
        });
        assert_eq!(answered.recv_timeout(std::time::Duration::from_secs(10)), Ok(false));
    }
}
