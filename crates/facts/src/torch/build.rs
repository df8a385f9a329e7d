//! The options that torch was built with. They have two sources: the code that `torch.__config__.show()` calls, and the
//! header that this code was compiled from. The code is authoritative; the header is used when the code cannot be read.

use std::collections::BTreeMap;

use model::{BuildOptions, Fact, Found, Gap, Site};

use super::super::{Context, Facts, key};
use super::libraries::is_library;
use super::macros;

/// Options with their values; options without a value are omitted, as in `torch.__config__.show()`.
pub(super) type OptionValues = BTreeMap<String, String>;

/// Both sources, and the options derived from them.
pub(super) struct Build {
    pub(super) code: Fact<OptionValues>,
    pub(super) header: Fact<OptionValues>,
    pub(super) options: Fact<OptionValues>,
}

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) -> Build {
    let returned = returned(context);
    let code = returned.clone().map(|returned| with_value(&returned.options));
    let header = header(context);
    let options = match (&code, &header) {
        (Fact::Seen { .. }, _) | (Fact::Unknown(_), Fact::Absent) => code.clone(),
        (_, Fact::Seen { .. }) | (Fact::Absent, Fact::Unknown(_)) => header.clone(),
        (Fact::Unknown(code), Fact::Unknown(header)) => Fact::Unknown(Gap::new(format!("{code}; {header}"))),
        (Fact::Absent, Fact::Absent) if context.torch.chosen.value().is_some() => Fact::Unknown(Gap::new(
            "no library of torch has a symbol caffe2::GetBuildOptions(), and torch/include/caffe2/core/macros.h does not ship in \
             this build",
        )),
        (Fact::Absent, Fact::Absent) => Fact::Absent,
    };
    facts.insert(key::TORCH_BUILD_CODE, code.clone());
    facts.insert(key::TORCH_BUILD_HEADER, header.clone());
    facts.insert(key::TORCH_BUILD, options.clone());
    facts.insert(key::TORCH_USE_NCCL, options.clone().and_then(|options, at| is_on(&options, "USE_NCCL").seen(at)));
    facts.insert(key::TORCH_CXX11_ABI, cxx11_abi(context, &returned, &options));
    Build { code, header, options }
}

/// The options that torch's code returns.
fn returned<'a>(context: &Context<'a>) -> Fact<&'a BuildOptions> {
    let libraries = context.torch_libraries(|name| is_library(name, b"libtorch_cpu") || is_library(name, b"libtorch"));
    libraries.and_then(|libraries, _| {
        let mut gap = None;
        for library in &libraries {
            for found in library.file.found {
                match found {
                    Ok(Found::BuildOptions(returned)) => {
                        return Fact::seen(returned, [library.site(Some("caffe2::GetBuildOptions()"))]);
                    }
                    Ok(_) => {}
                    Err(unread) => gap = gap.or(Some(unread.clone())),
                }
            }
        }
        gap.map_or(Fact::Absent, Fact::Unknown)
    })
}

fn header(context: &Context<'_>) -> Fact<OptionValues> {
    const PATH: &str = "include/caffe2/core/macros.h";
    context.in_torch(PATH).and_then(|bytes, at| match macros::options(bytes) {
        Ok(options) => Fact::Seen { value: with_value(&options), at },
        Err(why) => Fact::Unknown(Gap::new(format!("torch/{PATH} cannot be read: {why}"))),
    })
}

fn with_value(options: &OptionValues) -> OptionValues {
    options.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The value of an option.
pub(super) enum Switch {
    On,
    Off,
    /// A value that is neither.
    Odd(Gap),
}

impl Switch {
    fn seen(self, at: Vec<Site>) -> Fact<bool> {
        match self {
            Self::On => Fact::Seen { value: true, at },
            Self::Off => Fact::Seen { value: false, at },
            Self::Odd(gap) => Fact::Unknown(gap),
        }
    }
}

/// Reads an option as CMake does; an option without a value is off, and is not listed.
pub(super) fn is_on(options: &OptionValues, name: &str) -> Switch {
    match options.get(name).map(|value| value.to_ascii_uppercase()).as_deref() {
        Some("1" | "ON" | "TRUE" | "YES" | "Y") => Switch::On,
        None | Some("0" | "OFF" | "FALSE" | "NO" | "N") => Switch::Off,
        Some(other) => Switch::Odd(Gap::new(format!("{name} is '{other}', which is neither on nor off"))),
    }
}

/// The mangled name of the function shows the ABI; so do the compiler flags, if they set it.
fn cxx11_abi(context: &Context<'_>, returned: &Fact<&BuildOptions>, options: &Fact<OptionValues>) -> Fact<bool> {
    if let Fact::Seen { value, at } = returned {
        return Fact::Seen { value: value.cxx11_abi, at: at.clone() };
    }
    let libraries = context.torch_libraries(|name| is_library(name, b"libtorch_cpu") || is_library(name, b"libtorch"));
    for library in libraries.value().into_iter().flatten() {
        for symbol in library.elf.symbols.iter().flatten().filter(|symbol| symbol.defined) {
            let value = match symbol.name.as_str() {
                "_ZN6caffe215GetBuildOptionsB5cxx11Ev" => true,
                "_ZN6caffe215GetBuildOptionsEv" => false,
                _ => continue,
            };
            return Fact::seen(value, [library.site(Some("dynamic symbols"))]);
        }
    }
    options.clone().and_then(|options, at| {
        let flags = options.get("CXX_FLAGS").map(String::as_str).unwrap_or_default();
        let value = flags.split_whitespace().rev().find_map(|flag| flag.strip_prefix("-D_GLIBCXX_USE_CXX11_ABI="));
        match value {
            Some("0") => Fact::Seen { value: false, at },
            Some("1") => Fact::Seen { value: true, at },
            _ => Fact::Unknown(Gap::new("neither torch's symbols nor its compiler flags show its C++ ABI")),
        }
    })
}
