//! Statements of startup code that change where modules come from, and those that certainly do not.

use model::is_among;

use super::super::pattern;
use super::environment::{self, VariableEffect};
use super::expression::{CodeScope, split, string, strings};

/// What a statement does to the search for modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathEffect {
    /// `sys.path.insert`.
    Insert(i64, String),
    /// `sys.path.append`.
    Append(String),
    /// `sys.path.remove`.
    Remove(String),
    /// `site.addsitedir`.
    AddSite(String),
    /// Remembers the length of `sys.path`, for the next effect (setuptools, `easy-install.pth`).
    MarkEggs,
    /// Moves the entries that were added since the mark to the front.
    MoveEggs,
    /// Imports a module that is not in the standard library, and fails without it.
    Needs(String),
    /// Installs the finder of an editable package, a module of this name (setuptools).
    Editable(String),
    /// Changes a variable of the process.
    Variable(VariableEffect),
}

// Statements that no release of these packages uses to change sys.path.
pattern!(NAMESPACE, r"^import sys, types, os;.*\.f_locals\['sitedir'\].*sys\.modules\.setdefault\(");
pattern!(EGG_MARK, r"^import sys; sys\.__plen = len\(sys\.path\)$");
pattern!(
    EGG_MOVE,
    r"^import sys; new=sys\.path\[sys\.__plen:\]; del sys\.path\[sys\.__plen:\]; p=getattr\(sys,'__egginsert',0\); sys\.path\[p:p\]=new; sys\.__egginsert = p\+len\(new\)$"
);
pattern!(DISTUTILS, r"^import os; var = '[A-Z_]+'; enabled = .*; enabled and __import__\('_distutils_hack'\)");
pattern!(FINDER, r"^(__editable___\w+_finder)\.install\(\)$");
pattern!(INSERT, r"^sys\.path\.insert\(\s*(-?\d+)\s*,(.*)\)$");
pattern!(CALL, r"^(sys\.path\.append|sys\.path\.remove|site\.addsitedir|sys\.path\.extend)\((.*)\)$");
pattern!(FRONT, r"^sys\.path\[0?:0\]\s*=(.*)$");
pattern!(SUM, r"^sys\.path\s*=(.*)\+\s*sys\.path$");
pattern!(ADD, r"^sys\.path\s*\+=(.*)$");
pattern!(COVERAGE, r"^exec\(.*coverage\.process_startup\(\).*\)$");

/// Modules of tools that leave the search for modules as it is.
const TOOLS: &[&str] = &["_distutils_hack", "_virtualenv", "apport_python_hook", "coverage"];

/// Modules of the standard library.
const STANDARD: &str = "builtins importlib importlib.machinery importlib.util io logging os os.path pathlib re site \
    sys types warnings";

/// Statements that leave the search for modules as it is.
const HARMLESS_CALLS: &[&str] = &["pass", "apport_python_hook.install()", "coverage.process_startup()"];

/// The effects of one line of a `.pth` file; `None` if it is not understood.
pub(super) fn line(line: &str, scope: &CodeScope<'_>) -> Option<Vec<PathEffect>> {
    let line = line.trim();
    if !scope.budget.spend_on_text(line.len()) {
        return None;
    }
    let is = |pattern: &std::sync::LazyLock<regex::bytes::Regex>| pattern.is_match(line.as_bytes());
    if is(&NAMESPACE) || is(&DISTUTILS) {
        return Some(Vec::new());
    }
    if is(&EGG_MARK) {
        return Some(vec![PathEffect::MarkEggs]);
    }
    if is(&EGG_MOVE) {
        return Some(vec![PathEffect::MoveEggs]);
    }
    let statements = split(line, ';')?;
    let effects: Option<Vec<_>> = statements.into_iter().map(|part| statement(part.trim(), scope)).collect();
    effects.map(|effects| effects.into_iter().flatten().collect())
}

/// The effects of a module that runs when Python starts, such as `sitecustomize`; `None` if it is not understood.
pub(super) fn module(text: &str, scope: &CodeScope<'_>) -> Option<Vec<PathEffect>> {
    let mut effects = Vec::new();
    for text in text.lines().filter(|text| !text.trim().is_empty() && !text.trim_start().starts_with('#')) {
        let is_plain = matches!(text.trim_end(), "try:" | "else:" | "except ImportError:" | "except Exception:");
        if is_plain || is_docstring(text.trim()) {
            continue;
        }
        let mut more = line(text, scope)?;
        more.retain(|effect| !matches!(effect, PathEffect::Needs(_)));
        // What a block does depends on what happens before it.
        if text.starts_with([' ', '\t']) && !more.is_empty() {
            return None;
        }
        effects.extend(more);
    }
    Some(effects)
}

fn is_docstring(text: &str) -> bool {
    let quoted = |quote: &str| text.len() >= 2 * quote.len() && text.starts_with(quote) && text.ends_with(quote);
    quoted("\"\"\"") || quoted("'''")
}

/// The last argument of a call, which a comma may follow.
fn last_argument(text: &str) -> &str {
    let text = text.trim();
    text.strip_suffix(',').unwrap_or(text)
}

fn statement(text: &str, scope: &CodeScope<'_>) -> Option<Vec<PathEffect>> {
    let bytes = text.as_bytes();
    let group = |captures: &regex::bytes::Captures<'_>, index: usize| {
        captures.get(index).map(|found| String::from_utf8_lossy(found.as_bytes()).into_owned())
    };
    if text.is_empty() || HARMLESS_CALLS.contains(&text) || COVERAGE.is_match(bytes) {
        return Some(Vec::new());
    }
    if let Some(effects) = environment::effects(text, scope) {
        return Some(effects.into_iter().map(PathEffect::Variable).collect());
    }
    if let Some(mut modules) = imported(text) {
        modules.retain(|name| !is_among(name, STANDARD));
        let is_known = |name: &&str| TOOLS.contains(name) || name.starts_with("__editable___");
        let needs = || modules.iter().map(|name| PathEffect::Needs((*name).to_owned())).collect();
        return modules.iter().all(is_known).then(needs);
    }
    if let Some(captures) = FINDER.captures(bytes) {
        return Some(vec![PathEffect::Editable(group(&captures, 1)?)]);
    }
    if let Some(captures) = INSERT.captures(bytes) {
        let index = group(&captures, 1)?.parse().ok()?;
        return Some(vec![PathEffect::Insert(index, string(last_argument(&group(&captures, 2)?), scope)?)]);
    }
    let front = FRONT.captures(bytes).or_else(|| SUM.captures(bytes));
    if let Some(captures) = front {
        let entries = strings(&group(&captures, 1)?, scope)?;
        return Some(entries.into_iter().rev().map(|entry| PathEffect::Insert(0, entry)).collect());
    }
    if let Some(captures) = ADD.captures(bytes) {
        return Some(strings(&group(&captures, 1)?, scope)?.into_iter().map(PathEffect::Append).collect());
    }
    let captures = CALL.captures(bytes)?;
    let argument = group(&captures, 2)?;
    let argument = last_argument(&argument);
    Some(match group(&captures, 1)?.as_str() {
        "sys.path.extend" => strings(argument, scope)?.into_iter().map(PathEffect::Append).collect(),
        "sys.path.append" => vec![PathEffect::Append(string(argument, scope)?)],
        "sys.path.remove" => vec![PathEffect::Remove(string(argument, scope)?)],
        _ => vec![PathEffect::AddSite(string(argument, scope)?)],
    })
}

/// The modules of an `import` statement.
fn imported(text: &str) -> Option<Vec<&str>> {
    let modules = text.strip_prefix("import")?.strip_prefix(char::is_whitespace)?.split(',');
    let is_made_of = |text: &str, marks: &str| text.chars().all(|c| c.is_alphanumeric() || marks.contains(c));
    let module = |text| match *str::split_whitespace(text).collect::<Vec<_>>() {
        [name] => Some(name),
        [name, "as", alias] => Some(name).filter(|_| is_made_of(alias, "_")),
        _ => None,
    };
    modules.map(|text| module(text).filter(|name| is_made_of(name, "_."))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::budget::StartBudget;
    use super::*;
    use model::ImagePath;

    fn with<T>(ask: impl Fn(&CodeScope<'_>) -> T) -> T {
        let folder = ImagePath::from("site");
        let prefix = ImagePath::from("venv");
        let none = |_: &str| Ok(None);
        ask(&CodeScope {
            folder: Some(&folder),
            prefix: &prefix,
            directory: &prefix,
            home: None,
            file: None,
            variable: &none,
            names: &BTreeMap::new(),
            budget: &StartBudget::new(1_000),
        })
    }

    #[test]
    fn lines_that_change_the_path() {
        use PathEffect::{AddSite, Append, Editable, Insert, MarkEggs, MoveEggs, Needs, Remove};
        let text = |text: &str| text.to_owned();
        for (code, effects) in [
            ("import sys; sys.path.insert(0, '/x')", vec![Insert(0, text("/x"))]),
            ("import sys;sys.path.insert( -1,\"/x;y\" ) ;", vec![Insert(-1, text("/x;y"))]),
            ("import os, sys; sys.path.append(os.path.join('/a', 'b'))", vec![Append(text("/a/b"))]),
            ("import site; site.addsitedir('/opt/site')", vec![AddSite(text("/opt/site"))]),
            ("import sys; sys.path[0:0] = ['/a', '/b']", vec![Insert(0, text("/b")), Insert(0, text("/a"))]),
            ("import sys; sys.path = ['/a'] + sys.path", vec![Insert(0, text("/a"))]),
            ("import sys; sys.path += ['/a']", vec![Append(text("/a"))]),
            ("import sys; sys.path.extend(['/a', '/b'])", vec![Append(text("/a")), Append(text("/b"))]),
            ("import sys; sys.path.remove('/a')", vec![Remove(text("/a"))]),
            ("import _virtualenv", vec![Needs(text("_virtualenv"))]),
            ("import sys; sys.__plen = len(sys.path)", vec![MarkEggs]),
            (
                "import sys; new=sys.path[sys.__plen:]; del sys.path[sys.__plen:]; p=getattr(sys,'__egginsert',0); \
                 sys.path[p:p]=new; sys.__egginsert = p+len(new)",
                vec![MoveEggs],
            ),
            (
                "import __editable___torch_2_9_finder; __editable___torch_2_9_finder.install()",
                vec![Needs(text("__editable___torch_2_9_finder")), Editable(text("__editable___torch_2_9_finder"))],
            ),
        ] {
            assert_eq!(with(|scope| line(code, scope)), Some(effects), "{code}");
        }
    }

    #[test]
    fn lines_that_leave_the_path_and_lines_that_are_not_understood() {
        for (code, is_understood) in [
            ("import _virtualenv", true),
            (
                "import os; var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local') == 'local'; enabled \
              and __import__('_distutils_hack').add_shim();",
                true,
            ),
            (
                "import sys, types, os;p = os.path.join(sys._getframe(1).f_locals['sitedir'], *('google',));m = \
              sys.modules.setdefault('google', types.ModuleType('google'))",
                true,
            ),
            ("import coverage; coverage.process_startup()", true),
            ("import sys;exec('try: import coverage; coverage.process_startup()\\nexcept: pass')", true),
            ("import _virtualenv as v , coverage", true),
            ("import _virtualenv as v w", false),
            ("import _virtualenv, mine()", false),
            ("import coverage,", false),
            ("importcoverage", false),
            ("import mine", false),
            ("import sys; mine(sys.path)", false),
            ("import sys; sys.path.insert(0, mine)", false),
            ("import sys; exec(open('/x').read())", false),
            ("import sys; sys.path.clear()", false),
        ] {
            assert_eq!(with(|scope| line(code, scope)).is_some(), is_understood, "{code}");
        }
    }

    #[test]
    fn modules_that_run_at_startup() {
        let apport = "# install the handler\ntry:\n    import apport_python_hook\nexcept ImportError:\n    pass\nelse:\n    \
                      apport_python_hook.install()\n";
        assert_eq!(with(|scope| module(apport, scope)), Some(Vec::new()));
        assert_eq!(with(|scope| module("\"\"\"Text.\"\"\"\nimport sys\n\n", scope)), Some(Vec::new()));
        let insert = "import sys\nsys.path.insert(0, '/x')\n";
        assert_eq!(with(|scope| module(insert, scope)), Some(vec![PathEffect::Insert(0, "/x".to_owned())]));
        for other in
            ["try:\n    sys.path.insert(0, '/x')\nexcept ImportError:\n    pass\n", "if x:\n    pass\n", "main()\n"]
        {
            assert_eq!(with(|scope| module(other, scope)), None, "{other}");
        }
    }
}
