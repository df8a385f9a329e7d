//! Types of fact values. Each has one of the forms that rules and JSON use, and converts to and from it.

use std::collections::BTreeMap;
use std::fmt;

use model::{Arch, ImagePath, Value, Version};

/// Forms of values in rules, examples and JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A boolean.
    Bool,
    /// A string.
    Text,
    /// A version: a string in JSON and rules, compared by `version()`.
    Version,
    /// A list of strings.
    Texts,
    /// A list of integers.
    Numbers,
    /// A map of strings.
    Map,
    /// A list of maps of strings, with these names; a record may lack some.
    Records(&'static [&'static str]),
    /// A map of maps of lists of strings.
    Groups,
    /// An integer.
    Number,
}

impl Type {
    /// The field names of this record type.
    pub const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Records(fields) => fields,
            _ => &[],
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("true or false"),
            Self::Text => f.write_str("a string"),
            Self::Version => f.write_str("a version, as a string"),
            Self::Texts => f.write_str("a list of strings"),
            Self::Numbers => f.write_str("a list of whole numbers"),
            Self::Map => f.write_str("a map of strings"),
            Self::Records(fields) => write!(f, "a list of maps with the string fields {}", fields.join(", ")),
            Self::Groups => f.write_str("a map of maps of lists of strings"),
            Self::Number => f.write_str("a whole number"),
        }
    }
}

/// A Rust type of fact values.
pub trait FactType: Clone + fmt::Debug + PartialEq + Sized {
    /// The form.
    const TYPE: Type;
    /// The only possible values, for a fixed set of words; otherwise empty.
    const WORDS: &'static [&'static str] = &[];

    /// Converts the value to its form.
    fn to_value(&self) -> Value;

    /// Converts a value from its form; `None` if it has another type.
    fn from_value(value: Value) -> Option<Self>;
}

/// A Rust type of the elements of list facts.
pub trait ListItem: FactType {
    /// The form of the list.
    const LIST: Type;
}

/// Lists of strings by two names: the library or variable, and the kind or number of the list.
pub type Groups = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// The GPU code of one library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeLists {
    /// Architectures with machine code.
    pub cubin: Vec<Arch>,
    /// Architectures with PTX.
    pub ptx: Vec<Arch>,
}

/// Implements [`FactType`] for types that values hold as they are.
macro_rules! held {
    ($($kind:ty: $form:ident, $variant:ident;)+) => {
        $(impl FactType for $kind {
            const TYPE: Type = Type::$form;

            fn to_value(&self) -> Value {
                Value::$variant(self.clone())
            }

            fn from_value(value: Value) -> Option<Self> {
                if let Value::$variant(value) = value { Some(value) } else { None }
            }
        })+
    };
}

held! {
    bool: Bool, Bool;
    i64: Number, Int;
    String: Text, Text;
    Version: Version, Version;
}

impl FactType for ImagePath {
    const TYPE: Type = Type::Text;

    fn to_value(&self) -> Value {
        Value::Text(self.to_string())
    }

    fn from_value(value: Value) -> Option<Self> {
        <String as FactType>::from_value(value).map(|path| Self::from(path.as_str()))
    }
}

/// Written as `sm_90`.
impl FactType for Arch {
    const TYPE: Type = Type::Text;

    fn to_value(&self) -> Value {
        Value::Text(format!("sm_{self}"))
    }

    fn from_value(value: Value) -> Option<Self> {
        <String as FactType>::from_value(value)?.parse().ok()
    }
}

impl ListItem for String {
    const LIST: Type = Type::Texts;
}

impl ListItem for i64 {
    const LIST: Type = Type::Numbers;
}

impl<T: ListItem> FactType for Vec<T> {
    const TYPE: Type = T::LIST;

    fn to_value(&self) -> Value {
        Value::List(self.iter().map(FactType::to_value).collect())
    }

    fn from_value(value: Value) -> Option<Self> {
        let Value::List(values) = value else { return None };
        values.into_iter().map(FactType::from_value).collect()
    }
}

impl FactType for BTreeMap<String, String> {
    const TYPE: Type = Type::Map;

    fn to_value(&self) -> Value {
        map_to_value(self)
    }

    fn from_value(value: Value) -> Option<Self> {
        map_from_value(value)
    }
}

impl FactType for Groups {
    const TYPE: Type = Type::Groups;

    fn to_value(&self) -> Value {
        let group = |lists: &BTreeMap<String, Vec<String>>| map_to_value(lists);
        Value::Map(self.iter().map(|(name, lists)| (name.clone(), group(lists))).collect())
    }

    fn from_value(value: Value) -> Option<Self> {
        let Value::Map(groups) = value else { return None };
        groups.into_iter().map(|(name, lists)| Some((name, map_from_value(lists)?))).collect()
    }
}

/// `{"cubin": ["sm_80"], "ptx": ["compute_90"]}` for each library, by its path.
impl FactType for BTreeMap<String, CodeLists> {
    const TYPE: Type = Type::Groups;

    fn to_value(&self) -> Value {
        let list = |prefix: &str, archs: &[Arch]| {
            Value::List(archs.iter().map(|arch| Value::Text(format!("{prefix}_{arch}"))).collect())
        };
        let lists = |code: &CodeLists| {
            let [cubin, ptx] = [("sm", &code.cubin), ("compute", &code.ptx)].map(|(prefix, of)| list(prefix, of));
            Value::Map(BTreeMap::from([("cubin".to_owned(), cubin), ("ptx".to_owned(), ptx)]))
        };
        Value::Map(self.iter().map(|(path, code)| (path.clone(), lists(code))).collect())
    }

    fn from_value(value: Value) -> Option<Self> {
        let archs = |names: Option<Vec<String>>, prefix: &str| -> Option<Vec<Arch>> {
            let parse = |name: String| format!("sm_{}", name.strip_prefix(prefix)?).parse().ok();
            names.unwrap_or_default().into_iter().map(parse).collect()
        };
        let code = |mut lists: BTreeMap<String, Vec<String>>| -> Option<CodeLists> {
            let cubin = archs(lists.remove("cubin"), "sm_")?;
            let ptx = archs(lists.remove("ptx"), "compute_")?;
            lists.is_empty().then_some(CodeLists { cubin, ptx })
        };
        let libraries = Groups::from_value(value)?;
        libraries.into_iter().map(|(path, lists)| Some((path, code(lists)?))).collect()
    }
}

fn map_to_value<T: FactType>(entries: &BTreeMap<String, T>) -> Value {
    Value::Map(entries.iter().map(|(name, entry)| (name.clone(), entry.to_value())).collect())
}

fn map_from_value<T: FactType>(value: Value) -> Option<BTreeMap<String, T>> {
    let Value::Map(entries) = value else { return None };
    entries.into_iter().map(|(name, entry)| Some((name, T::from_value(entry)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: &[&str]) -> Value {
        Value::List(values.iter().map(|text| Value::from(*text)).collect())
    }

    fn map(entries: &[(&str, Value)]) -> Value {
        Value::Map(entries.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
    }

    #[test]
    fn values_survive_the_way_to_their_form_and_back() {
        fn same<T: FactType>(value: &Value) {
            let read = T::from_value(value.clone()).unwrap_or_else(|| panic!("{value:?}"));
            assert_eq!(read.to_value(), *value);
        }
        same::<bool>(&Value::Bool(true));
        same::<i64>(&Value::Int(-1));
        same::<String>(&Value::from("text"));
        same::<ImagePath>(&Value::from("/usr/lib/libnccl.so.2"));
        same::<Arch>(&Value::from("sm_90a"));
        same::<Vec<String>>(&texts(&["a", "b"]));
        same::<Vec<i64>>(&Value::List(vec![Value::Int(11), Value::Int(12)]));
        same::<BTreeMap<String, String>>(&map(&[("name", Value::from("value"))]));
        same::<Groups>(&map(&[("NVIDIA_REQUIRE_CUDA", map(&[("1", texts(&["cuda>=12.8"]))]))]));
        let code = map(&[("cubin", texts(&["sm_80", "sm_90a"])), ("ptx", texts(&["compute_90"]))]);
        same::<BTreeMap<String, CodeLists>>(&map(&[("/lib/a.so", code)]));
    }

    #[test]
    fn values_of_other_types_are_refused() {
        assert_eq!(<bool as FactType>::from_value(Value::Int(1)), None);
        assert_eq!(<i64 as FactType>::from_value(Value::from("1")), None);
        assert_eq!(<Version as FactType>::from_value(Value::from("2.9.0")), None);
        assert_eq!(<Vec<String> as FactType>::from_value(Value::List(vec![Value::Int(1)])), None);
        assert_eq!(<Arch as FactType>::from_value(Value::from("90")), None);
        let odd = map(&[("/lib/a.so", map(&[("elf", texts(&["sm_80"]))]))]);
        assert_eq!(<BTreeMap<String, CodeLists> as FactType>::from_value(odd), None);
    }
}
