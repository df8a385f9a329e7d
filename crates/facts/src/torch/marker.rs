//! Environment markers of requirements (PEP 508; PyPA specifications, "Dependency specifiers").

use std::cmp::Ordering;

use model::Version;

/// The environment that markers are evaluated in: Python on Linux.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkerEnvironment {
    /// Minor version of Python 3.
    pub(super) minor: u32,
    /// `platform.machine()`, if known.
    pub(super) machine: Option<&'static str>,
}

/// Most parentheses of a marker that are evaluated. Each level takes stack, and the markers of packages have few.
const MOST_PARENTHESES: usize = 100;

/// A marker with a syntax error.
struct MalformedMarker;

impl MarkerEnvironment {
    /// Result of a marker; `None` if it depends on something unknown.
    pub(super) fn accepts(&self, marker: &str) -> Option<bool> {
        let mut words = words(marker);
        if words.iter().filter(|word| **word == "(").count() > MOST_PARENTHESES {
            return None;
        }
        words.reverse();
        let result = self.alternatives(&mut words).ok()?;
        result.filter(|_| words.is_empty())
    }

    /// `A or B`.
    fn alternatives(&self, rest: &mut Vec<&str>) -> Result<Option<bool>, MalformedMarker> {
        let mut result = self.conditions(rest)?;
        while rest.last() == Some(&"or") {
            rest.pop();
            result = match (result, self.conditions(rest)?) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            };
        }
        Ok(result)
    }

    /// `A and B`.
    fn conditions(&self, rest: &mut Vec<&str>) -> Result<Option<bool>, MalformedMarker> {
        let mut result = self.condition(rest)?;
        while rest.last() == Some(&"and") {
            rest.pop();
            result = match (result, self.condition(rest)?) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
        }
        Ok(result)
    }

    fn condition(&self, rest: &mut Vec<&str>) -> Result<Option<bool>, MalformedMarker> {
        if rest.last() == Some(&"(") {
            rest.pop();
            let result = self.alternatives(rest)?;
            return if rest.pop() == Some(")") { Ok(result) } else { Err(MalformedMarker) };
        }
        let mut next = || rest.pop().ok_or(MalformedMarker);
        let left = next()?;
        let mut operator = next()?.to_owned();
        if operator == "not" {
            operator = format!("not {}", next()?);
        }
        let (Some(left), Some(right)) = (self.value(left), self.value(next()?)) else { return Ok(None) };
        Ok(compare(&left, &operator, &right))
    }

    /// Value of a variable or a literal.
    fn value(&self, word: &str) -> Option<String> {
        if let Some(literal) = word.strip_prefix(['"', '\'']) {
            return Some(literal.trim_end_matches(['"', '\'']).to_owned());
        }
        Some(match word {
            "python_version" => format!("3.{}", self.minor),
            "platform_system" => "Linux".to_owned(),
            "sys_platform" => "linux".to_owned(),
            "os_name" => "posix".to_owned(),
            "platform_python_implementation" => "CPython".to_owned(),
            "implementation_name" => "cpython".to_owned(),
            "platform_machine" => self.machine?.to_owned(),
            // A requirement of an extra belongs to those who asked for it.
            "extra" => String::new(),
            _ => return None,
        })
    }
}

/// Compares as versions if both sides are versions, else as text.
fn compare(left: &str, operator: &str, right: &str) -> Option<bool> {
    match operator {
        "in" => return Some(right.contains(left)),
        "not in" => return Some(!right.contains(left)),
        _ => {}
    }
    let order = match (Version::parse(left), Version::parse(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => left.cmp(right),
    };
    is_met(operator, order)
}

/// Returns true if an operator admits the order of its sides; `None` for another operator than those of order.
pub(super) fn is_met(operator: &str, order: Ordering) -> Option<bool> {
    Some(match operator {
        "==" | "===" => order == Ordering::Equal,
        "!=" => order != Ordering::Equal,
        "<" => order == Ordering::Less,
        "<=" => order != Ordering::Greater,
        ">" => order == Ordering::Greater,
        ">=" => order != Ordering::Less,
        _ => return None,
    })
}

/// Words, operators, parentheses and quoted literals.
fn words(text: &str) -> Vec<&str> {
    let mut list = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '(' | ')' => Some(1),
            '"' | '\'' => rest.get(1..).and_then(|inner| inner.find(first)).map(|end| end + 2),
            '<' | '>' | '=' | '!' | '~' => rest.find(|c| !"<>=!~".contains(c)),
            _ => rest.find(|c: char| !(c.is_alphanumeric() || "_.".contains(c))).filter(|end| *end > 0),
        };
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        list.push(word);
        rest = after.trim_start();
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_parentheses_are_unknown() {
        let environment = MarkerEnvironment { minor: 12, machine: None };
        let nested = |depth| format!("{}os_name == 'posix'{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(environment.accepts(&nested(100)), Some(true));
        assert_eq!(environment.accepts(&nested(500_000)), None);
    }

    #[test]
    fn markers_of_wheels() {
        let environment = MarkerEnvironment { minor: 11, machine: Some("x86_64") };
        for (marker, expected) in [
            (r#"platform_system == "Linux" and platform_machine == "x86_64""#, Some(true)),
            (r#"platform_machine != 'x86_64' or sys_platform == "win32""#, Some(false)),
            (r#"python_version >= "3.12""#, Some(false)),
            (r#"python_version<"3.9""#, Some(false)),
            (r#"python_version > "3.9" and (os_name == "nt" or os_name == "posix")"#, Some(true)),
            (r#"extra == "optree""#, Some(false)),
            (r#"extra == "optree" and python_full_version >= "3.11.4""#, Some(false)),
            (r#"python_full_version >= "3.11.4""#, None),
            (r#"python_full_version >= "3.11.4" or os_name == "posix""#, Some(true)),
            (r#""linux" in sys_platform"#, Some(true)),
            (r#"platform_machine not in "aarch64 x86_64""#, Some(false)),
            (r#"python_version >= "3.8" and"#, None),
            (r#"(python_version >= "3.8""#, None),
            (r#"python_version ~= "3.8""#, None),
        ] {
            assert_eq!(environment.accepts(marker), expected, "{marker}");
        }
        let unknown = MarkerEnvironment { machine: None, ..environment };
        assert_eq!(unknown.accepts(r#"platform_machine == "x86_64""#), None);
    }
}
