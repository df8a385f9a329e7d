//! Conditions of Python code whose outcome is known beforehand: those on the platform, and those on environment variables as long as
//! the process does not have the variable.

use std::collections::BTreeMap;

/// The variable that stands for `__name__ == "__main__"`.
pub(super) const MAIN: &str = "__main__";

/// What comes before the name of a module that must be found.
pub(super) const FOUND: &str = "find_spec ";

/// Longest expression that is read, in bytes: each `not` is a step of a recursion.
const LONGEST: usize = 200;

/// A value, and the variable that must not be set for it; empty if there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    value: PythonValue,
    pub(super) unless: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PythonValue {
    None,
    Truth(bool),
    Text(String),
}

/// Values by their names.
pub(super) type Names = BTreeMap<String, Known>;

/// Conditions with one outcome wherever PyTorch runs with NCCL, and on which libraries depend.
const FIXED: &[(&str, bool)] = &[
    ("TYPE_CHECKING", false),
    ("typing.TYPE_CHECKING", false),
    ("os.name == 'nt'", false),
    ("os.name != 'nt'", true),
    ("sys.platform == 'win32'", false),
    ("sys.platform != 'win32'", true),
    ("sys.platform == 'linux'", true),
    ("sys.platform == 'darwin'", false),
    ("sys.platform.startswith('win')", false),
    ("sys.platform.startswith('linux')", true),
    ("platform.system() == 'Windows'", false),
    ("platform.system() == 'Linux'", true),
    ("platform.system() == 'Darwin'", false),
];

/// The outcome of a condition that has the same one wherever PyTorch runs with NCCL.
pub fn fixed_condition(text: &str) -> Option<bool> {
    let quoted = text.replace('"', "'");
    FIXED.iter().find(|(condition, _)| *condition == quoted).map(|(_, truth)| *truth)
}

impl Known {
    pub(super) fn is_true(&self) -> bool {
        match &self.value {
            PythonValue::None => false,
            PythonValue::Truth(truth) => *truth,
            PythonValue::Text(text) => !text.is_empty(),
        }
    }

    /// The value of an expression; `None` if it is not known.
    pub(super) fn of(text: &str, names: &Names) -> Option<Self> {
        let text = text.trim();
        if text.len() > LONGEST {
            return None;
        }
        let plain = |value| Some(Self { value, unless: String::new() });
        if let Some(truth) = fixed_condition(text) {
            return plain(PythonValue::Truth(truth));
        }
        if text.replace('"', "'") == "__name__ == '__main__'" {
            return Some(Self { value: PythonValue::Truth(true), unless: MAIN.to_owned() });
        }
        if let Some(rest) = text.strip_prefix("not ") {
            let known = Self::of(rest, names)?;
            return Some(Self { value: PythonValue::Truth(!known.is_true()), ..known });
        }
        if text.contains(" and ") || text.contains(" or ") || text.contains(" if ") {
            return None;
        }
        if let Some((left, right)) = text.split_once(" in ") {
            return Self::contained(left, right, names);
        }
        for (sign, equal) in [("==", true), ("!=", false), (" is not ", false), (" is ", true)] {
            if let Some((left, right)) = text.split_once(sign) {
                let left = Self::of(left, names)?;
                let right = Self::of(right, &Names::new())?;
                return Some(Self { value: PythonValue::Truth((left.value == right.value) == equal), ..left });
            }
        }
        match text {
            "None" => return plain(PythonValue::None),
            "True" => return plain(PythonValue::Truth(true)),
            "False" => return plain(PythonValue::Truth(false)),
            _ => {}
        }
        if let Some(literal) = literal(text) {
            return plain(PythonValue::Text(literal.to_owned()));
        }
        names.get(text).cloned().or_else(|| Self::called(text, names))
    }

    /// `VALUE in (…)` and `"NAME" in os.environ`, each with or without `not`.
    fn contained(left: &str, right: &str, names: &Names) -> Option<Self> {
        let (left, is_in) = left.trim_end().strip_suffix(" not").map_or((left, true), |left| (left, false));
        if right.trim() == "os.environ" {
            let unless = literal(left.trim())?.to_owned();
            return Some(Self { value: PythonValue::Truth(!is_in), unless });
        }
        let known = Self::of(left, names)?;
        let PythonValue::Text(text) = &known.value else { return None };
        let list = right.trim().trim_start_matches(['(', '[', '{']).trim_end_matches([')', ']', '}']);
        let members: Option<Vec<_>> =
            list.split(',').map(str::trim).filter(|member| !member.is_empty()).map(literal).collect();
        let value = PythonValue::Truth(members?.contains(&text.as_str()) == is_in);
        Some(Self { value, ..known })
    }

    /// Calls of functions whose result is known if no variable is set.
    fn called(text: &str, names: &Names) -> Option<Self> {
        let inner = text.strip_suffix(')')?;
        if let Some(of) = inner.strip_suffix(".lower(").or_else(|| inner.strip_suffix(".strip(")) {
            let known = Self::of(of, names)?;
            let PythonValue::Text(text) = &known.value else { return None };
            return Some(Self { value: PythonValue::Text(text.trim().to_lowercase()), ..known });
        }
        if let Some(of) = inner.strip_suffix(".upper(") {
            let known = Self::of(of, names)?;
            let PythonValue::Text(text) = &known.value else { return None };
            return Some(Self { value: PythonValue::Text(text.to_uppercase()), ..known });
        }
        if let Some(of) = inner.strip_prefix("bool(") {
            let known = Self::of(of, names)?;
            return Some(Self { value: PythonValue::Truth(known.is_true()), ..known });
        }
        if let Some(of) = inner.strip_prefix("int(") {
            let known = Self::of(of, names)?;
            let PythonValue::Text(text) = &known.value else { return None };
            let number: i64 = text.parse().ok()?;
            return Some(Self { value: PythonValue::Truth(number != 0), ..known });
        }
        let finders = ["importlib.util.find_spec(", "find_spec("];
        if let Some(arguments) = finders.iter().find_map(|finder| inner.strip_prefix(finder)) {
            let module = literal(arguments.split(',').next()?.trim())?;
            return Some(Self { value: PythonValue::Truth(true), unless: format!("{FOUND}{module}") });
        }
        let getters = ["os.getenv(", "os.environ.get(", "getenv(", "environ.get("];
        let arguments = getters.iter().find_map(|getter| inner.strip_prefix(getter))?;
        let (name, default) = arguments.split_once(',').map_or((arguments, None), |(name, rest)| (name, Some(rest)));
        let value = default.map_or(Some(PythonValue::None), |default| Some(Self::of(default, names)?.value))?;
        Some(Self { value, unless: literal(name.trim())?.to_owned() })
    }
}

/// The content of a string literal without escapes, or the digits of a number.
fn literal(text: &str) -> Option<&str> {
    let inside = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = inside('"').or_else(|| inside('\'')).or(is_number.then_some(text))?;
    (!text.contains(['"', '\'', '\\'])).then_some(text)
}
