//! Parts of a fact's value.

use model::Value;

/// The part of a value that a fix shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FixFilter {
    /// The first number of a version: `12` of 12.8.
    Major,
    /// The name of PyTorch's index for a CUDA release: `cu128` of 12.8.
    Index,
    /// The version in a package index, without its local part: `2.9.0` of 2.9.0+cu128. Pre-releases, and builds whose local part
    /// is not that of an index of PyTorch, are in none.
    Public,
    /// The first element of a list.
    First,
    /// The package of a requirement: `nvidia-nccl-cu12` of nvidia-nccl-cu12==2.27.5.
    Name,
    /// The first word of a text or of a list's first element.
    Word,
    /// The name of the variable that a text or a list's first element sets: `NCCL_ALGO` of `NCCL_ALGO=Bogus (...)`.
    Variable,
    /// The folder of a path.
    Folder,
    /// The compute capability of a GPU architecture: `9.0` of `sm_90`.
    Capability,
    /// The library that a message of the dynamic loader names first, also behind the name of Python's exception:
    /// `libcudnn.so.9` of `ImportError: libcudnn.so.9: cannot open …`.
    Library,
}

impl FixFilter {
    pub(super) const ALL: [Self; 10] = [
        Self::Major,
        Self::Index,
        Self::Public,
        Self::First,
        Self::Name,
        Self::Word,
        Self::Variable,
        Self::Folder,
        Self::Capability,
        Self::Library,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Major => "major",
            Self::Index => "index",
            Self::Public => "public",
            Self::First => "first",
            Self::Name => "name",
            Self::Word => "word",
            Self::Variable => "variable",
            Self::Folder => "folder",
            Self::Capability => "capability",
            Self::Library => "library",
        }
    }

    pub(super) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|filter| filter.name() == name)
    }

    /// The part of a value; `None` if the value has no such part.
    pub(super) fn apply(self, value: &Value) -> Option<String> {
        let first = match value {
            Value::List(values) => values.first()?,
            value => value,
        };
        let text = first.to_string();
        let part = match self {
            Self::First => &*text,
            Self::Major => text.split('.').next()?,
            Self::Public => published(&text)?,
            Self::Name => text.split("==").next()?,
            Self::Word => text.split_whitespace().next()?,
            Self::Variable => text.split_once('=')?.0.split_whitespace().next_back()?,
            Self::Folder => text.rsplit_once('/')?.0,
            Self::Library => {
                let (named, _reason) = text.rsplit_once(": ")?;
                let is_library = |part: &&str| {
                    part.rsplit('/').next().is_some_and(|name| name.contains(".so")) && !part.contains(' ')
                };
                named.split(": ").take(2).find(is_library)?
            }
            Self::Capability => {
                let number = text.strip_prefix("sm_")?.trim_end_matches(|mark: char| mark.is_ascii_lowercase());
                let (major, minor) = number.split_at_checked(number.len().checked_sub(1)?)?;
                return (!major.is_empty()).then(|| format!("{major}.{minor}"));
            }
            Self::Index => {
                let mut numbers = text.split('.');
                let major = numbers.next()?;
                let minor = numbers.next()?;
                let are_numbers = [major, minor].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
                return are_numbers.then(|| format!("cu{major}{minor}"));
            }
        };
        (!part.is_empty()).then(|| part.to_owned())
    }
}

/// The public part of a version, if an index has it.
fn published(version: &str) -> Option<&str> {
    let (public, local) = version.split_once('+').unwrap_or((version, ""));
    let is_final = public.replace(".post", ".").split('.').all(|part| part.parse::<u32>().is_ok());
    let backend = local.trim_end_matches(|mark: char| mark.is_ascii_digit() || mark == '.');
    (is_final && ["", "cu", "cpu", "rocm", "xpu"].contains(&backend)).then_some(public)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_take_a_part_of_a_value() {
        let list = Value::List(vec![Value::from("sympy 1.12 (needs >=1.13)"), Value::from("x")]);
        for (filter, value, expected) in [
            (FixFilter::Major, Value::from("12.8"), Some("12")),
            (FixFilter::Index, Value::from("12.8"), Some("cu128")),
            (FixFilter::Index, Value::from("13.0.48"), Some("cu130")),
            (FixFilter::Index, Value::from("12"), None),
            (FixFilter::Index, Value::from("a.b"), None),
            (FixFilter::Public, Value::from("2.9.0+cu128"), Some("2.9.0")),
            (FixFilter::Public, Value::from("2.7.1.post1"), Some("2.7.1.post1")),
            (FixFilter::Public, Value::from("2.9.0a0+50eac811a6.nv25.09"), None),
            (FixFilter::Public, Value::from("2.9.0+git1234abc"), None),
            (FixFilter::Public, Value::from("2.10.0.dev20251001+cu128"), None),
            (FixFilter::Name, Value::from("nvidia-nccl-cu12==2.27.5"), Some("nvidia-nccl-cu12")),
            (FixFilter::First, list.clone(), Some("sympy 1.12 (needs >=1.13)")),
            (FixFilter::Word, list, Some("sympy")),
            (FixFilter::Word, Value::List(Vec::new()), None),
            (FixFilter::Variable, Value::from("NCCL_ALGO=Bogus (no such word)"), Some("NCCL_ALGO")),
            (FixFilter::Variable, Value::from("CUDA sees 1 with CUDA_VISIBLE_DEVICES=0"), Some("CUDA_VISIBLE_DEVICES")),
            (FixFilter::Variable, Value::from("no setting"), None),
            (FixFilter::Folder, Value::from("/opt/lib/a.so"), Some("/opt/lib")),
            (FixFilter::Folder, Value::from("a.so"), None),
            (FixFilter::Library, Value::from("libcudnn.so.9: cannot open"), Some("libcudnn.so.9")),
            (FixFilter::Library, Value::from("/a/libx.so: undefined symbol: y: z"), Some("/a/libx.so")),
            (FixFilter::Library, Value::from("ImportError: /a/liby.so: file too short"), Some("/a/liby.so")),
            (FixFilter::Library, Value::from("ImportError: /a/x.so.d/y: z"), None),
            (FixFilter::Library, Value::from("OSError: no file a.so: z"), None),
            (FixFilter::Library, Value::from("libcudnn.so.9"), None),
            (FixFilter::Capability, Value::from("sm_90a"), Some("9.0")),
            (FixFilter::Capability, Value::from("sm_100"), Some("10.0")),
            (FixFilter::Capability, Value::from("sm_9"), None),
            (FixFilter::Capability, Value::from("compute_90"), None),
        ] {
            assert_eq!(filter.apply(&value).as_deref(), expected, "{} of {value}", filter.name());
            assert_eq!(FixFilter::find(filter.name()), Some(filter));
        }
    }
}
