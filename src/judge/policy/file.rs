//! The form of `ncclcheck.yaml` and of profiles.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::document::{Entries, Spanned};
use crate::model::Severity;

/// A policy of ncclcheck.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[schemars(title = "ncclcheck policy")]
pub(super) struct PolicyFile {
    /// What it is for, in one line.
    pub(super) about: String,
    /// The profile that it builds on; `ncclcheck rules profiles` lists them.
    #[schemars(with = "Option<String>")]
    pub(super) profile: Option<Spanned<String>>,
    /// Findings from this severity on fail a check; error if not said.
    pub(super) fail_on: Option<Severity>,
    /// Which rules count, and how much.
    pub(super) rules: Selection,
    /// What must hold of every image.
    #[schemars(with = "Vec<RequirementForm>")]
    pub(super) require: Vec<Requirement>,
    /// Findings that are accepted.
    pub(super) waivers: Vec<WaiverEntry>,
}

/// Which rules count, and how much.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Selection {
    /// Folders of rules of one's own, relative to this file: AREA/NAME.yaml.
    #[schemars(with = "Vec<String>")]
    pub(super) folders: Vec<Spanned<String>>,
    /// Only these: ids, `area/*` or `*`. All if not said.
    #[schemars(with = "Vec<String>")]
    pub(super) only: Vec<Spanned<String>>,
    /// Severities by id, `area/*` or `*`; of several that match, the last counts.
    #[schemars(with = "BTreeMap<String, RuleLevel>")]
    pub(super) severity: Entries<RuleLevel>,
}

/// How much a rule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Level")]
pub(super) enum RuleLevel {
    /// It is not asked.
    Off,
    Info,
    Warning,
    Error,
}

impl RuleLevel {
    pub(super) const fn severity(self) -> Option<Severity> {
        match self {
            Self::Off => None,
            Self::Info => Some(Severity::Info),
            Self::Warning => Some(Severity::Warning),
            Self::Error => Some(Severity::Error),
        }
    }
}

/// A finding that is accepted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Entry")]
pub(super) struct WaiverEntry {
    /// The rule: its id, or `area/*`.
    #[schemars(with = "String")]
    pub(super) rule: Spanned<String>,
    /// Why it is accepted, for those who read it later.
    #[schemars(with = "String", length(min = 1))]
    pub(super) reason: Spanned<String>,
    /// The last day, as 2027-01-31 (UTC), or never. Behind it the finding fails again.
    #[schemars(with = "String", regex(pattern = r"^(\d{4}-\d{2}-\d{2}|never)$"))]
    pub(super) expires: Spanned<String>,
    /// Only for images whose name one of these matches; * stands for any characters.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Vec<String>", length(min = 1))]
    pub(super) images: Option<Vec<Spanned<String>>>,
    /// Only for the image with this digest, of its manifest or its configuration.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    pub(super) digest: Option<Spanned<String>>,
    /// Only for the finding with this fingerprint, as the JSON report has it, or its beginning of 8 digits or more: then another
    /// variable or file that the same rule finds is not accepted with it.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    pub(super) fingerprint: Option<Spanned<String>>,
    /// Whether it also accepts that the rule cannot be answered.
    #[serde(default)]
    pub(super) unknown: bool,
}

/// A binding that is written must bind: one that is empty is no missing one.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// What must hold.
#[derive(Debug)]
pub(super) struct Requirement {
    pub(super) that: Spanned<String>,
    pub(super) because: Option<String>,
    pub(super) severity: Option<Severity>,
    pub(super) id: Option<Spanned<String>>,
}

/// A condition: `torch.version >= 2.6`, or CEL.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes the two forms to editors")]
enum RequirementForm {
    Short(String),
    Long(LongRequirement),
}

/// What must hold, why, and how bad it is where it does not.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct LongRequirement {
    /// The condition: `torch.version >= 2.6`, or CEL.
    #[schemars(with = "String")]
    that: Spanned<String>,
    /// Why.
    because: Option<String>,
    /// How bad it is; error if not said.
    severity: Option<Severity>,
    /// What the rule is called behind `require/`; made of the condition if not said.
    #[schemars(with = "Option<String>")]
    id: Option<Spanned<String>>,
}

impl<'de> Deserialize<'de> for Requirement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A text has its place only from outside.
        let form: Spanned<ProfileForm> = Spanned::deserialize(deserializer)?;
        Ok(match form.value {
            ProfileForm::Short(that) => Self {
                that: Spanned::new(that, form.referenced, form.defined),
                because: None,
                severity: None,
                id: None,
            },
            ProfileForm::Long(long) => {
                Self { that: long.that, because: long.because, severity: long.severity, id: long.id }
            }
        })
    }
}

enum ProfileForm {
    Short(String),
    Long(LongRequirement),
}

impl<'de> Deserialize<'de> for ProfileForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = ProfileForm;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a condition such as `torch.version >= 2.6`, or a map with it under `that`")
            }

            fn visit_str<E>(self, text: &str) -> Result<ProfileForm, E> {
                Ok(ProfileForm::Short(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ProfileForm, A::Error> {
                LongRequirement::deserialize(MapAccessDeserializer::new(map)).map(ProfileForm::Long)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// The JSON schema of policies, for editors.
pub fn schema() -> String {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<PolicyFile>();
    format!("{:#}\n", schema.as_value())
}
