//! The options that torch was built with.

use std::collections::BTreeMap;

use crate::model::{Fact, Gap};

use super::super::{Context, Facts, key, pattern};

// caffe2/core/macros.h.in: CAFFE2_BUILD_STRINGS.
pattern!(BUILD_STRING, r#"\{"([A-Z0-9_]+)", "((?:[^"\\]|\\.)*)"\}"#);

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let build = context.in_torch("include/caffe2/core/macros.h");
    let build: Fact<BTreeMap<String, String>> = match build {
        Fact::Absent if context.torch.chosen.value().is_some() => Fact::Unknown(Gap::new(
            "torch/include/caffe2/core/macros.h does not ship in this build, and its options stand only in code",
        )),
        other => other.and_then(|bytes, at| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let options = BUILD_STRING.captures_iter(bytes).map(|captures| (text(&captures[1]), text(&captures[2])));
            let options: BTreeMap<_, _> = options.filter(|(_, value)| !value.is_empty()).collect();
            if options.is_empty() {
                return Fact::Unknown(Gap::new("torch/include/caffe2/core/macros.h holds no CAFFE2_BUILD_STRINGS"));
            }
            Fact::Seen { value: options, at }
        }),
    };
    facts.insert(
        key::TORCH_USE_NCCL,
        build.clone().and_then(|options, at| {
            // CMake's truths; an option without a value is off, and was left out above.
            match options.get("USE_NCCL").map(|value| value.to_ascii_uppercase()).as_deref() {
                Some("1" | "ON" | "TRUE" | "YES" | "Y") => Fact::Seen { value: true, at },
                None | Some("0" | "OFF" | "FALSE" | "NO" | "N") => Fact::Seen { value: false, at },
                Some(other) => Fact::Unknown(Gap::new(format!("USE_NCCL is '{other}', which is neither on nor off"))),
            }
        }),
    );
    facts.insert(key::TORCH_BUILD, build);
}
