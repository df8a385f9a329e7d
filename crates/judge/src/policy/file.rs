//! The format of `ncclcheck.yaml` and of profiles.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use model::document::{Entries, Spanned};
use model::{FailOn, Severity};

/// An ncclcheck policy.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[schemars(title = "ncclcheck policy")]
pub(super) struct PolicyFile {
    /// Purpose of the policy, in one line.
    pub(super) about: String,
    /// Policies that this one builds on and takes precedence over: paths relative to this file, or
    /// oci://HOST/NAME@sha256:DIGEST in a registry.
    #[schemars(with = "Vec<String>")]
    pub(super) extends: Vec<Spanned<String>>,
    /// The profile that the policy builds on; `ncclcheck rules profiles` lists the profiles.
    #[schemars(with = "Option<String>")]
    pub(super) profile: Option<Spanned<String>>,
    /// Lowest severity that fails a check, or never; error by default.
    pub(super) fail_on: Option<FailOn>,
    /// The rules in force and their severities.
    pub(super) rules: Selection,
    /// Conditions that every image must meet.
    #[serde(deserialize_with = "requirements")]
    #[schemars(with = "Vec<RequirementForm>")]
    pub(super) require: Vec<Requirement>,
    /// Accepted findings.
    pub(super) waivers: Vec<WaiverEntry>,
}

/// The rules in force and their severities.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Selection {
    /// Folders with your own rules, AREA/NAME.yaml, relative to this file.
    #[schemars(with = "Vec<String>")]
    pub(super) folders: Vec<Spanned<String>>,
    /// The only rules in force: ids, `area/*` or `*`; all rules by default.
    #[schemars(with = "Vec<String>")]
    pub(super) only: Vec<Spanned<String>>,
    /// Severities by id, `area/*` or `*`; the last match wins.
    #[schemars(with = "BTreeMap<String, RuleLevel>")]
    pub(super) severity: Entries<RuleLevel>,
}

/// Severity of a rule, or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Level")]
pub(super) enum RuleLevel {
    /// The rule is not evaluated.
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

/// An accepted finding.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Entry")]
pub(super) struct WaiverEntry {
    /// The rule: its id, or `area/*`.
    #[schemars(with = "String")]
    pub(super) rule: Spanned<String>,
    /// Reason for the waiver, for later readers.
    #[schemars(with = "String", length(min = 1))]
    pub(super) reason: Spanned<String>,
    /// Last day of the waiver, as 2027-01-31 (UTC), or never. The finding fails again after it.
    #[schemars(with = "String", regex(pattern = r"^(\d{4}-\d{2}-\d{2}|never)$"))]
    pub(super) expires: Spanned<String>,
    /// Limits the waiver to images whose name matches one of these patterns; * stands for any characters.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Vec<String>", length(min = 1))]
    pub(super) images: Option<Vec<Spanned<String>>>,
    /// Limits the waiver to the image with this digest of its manifest or its configuration.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    pub(super) digest: Option<Spanned<String>>,
    /// Limits the waiver to the finding with this fingerprint from the JSON report, or a prefix of 8 digits or more:
    /// the rule still fails for other variables or files.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "String")]
    pub(super) fingerprint: Option<Spanned<String>>,
    /// True to also accept an unknown outcome of the rule.
    #[serde(default)]
    pub(super) unknown: bool,
}

/// A key that is present must limit the waiver: an empty value is an error, not a missing key.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A condition with its reason and the severity of a violation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "LongRequirement")]
pub(super) struct Requirement {
    /// The condition: `torch.version >= 2.6`, or CEL.
    #[schemars(with = "String")]
    pub(super) that: Spanned<String>,
    /// Reason for the requirement.
    pub(super) because: Option<String>,
    /// Severity of a violation; error by default.
    pub(super) severity: Option<Severity>,
    /// Name of the rule after `require/`; derived from the condition by default.
    #[schemars(with = "Option<String>")]
    pub(super) id: Option<Spanned<String>>,
}

/// A condition: `torch.version >= 2.6`, or CEL.
#[derive(JsonSchema)]
#[serde(untagged)]
enum RequirementForm {
    Short(String),
    Long(Requirement),
}

fn requirements<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Requirement>, D::Error> {
    // Only the value around a text carries the text's place.
    let forms = Vec::<Spanned<RequirementForm>>::deserialize(deserializer)?;
    let requirement = |form: Spanned<RequirementForm>| match form.value {
        RequirementForm::Short(that) => {
            let that = Spanned::new(that, form.referenced, form.defined);
            Requirement { that, because: None, severity: None, id: None }
        }
        RequirementForm::Long(long) => long,
    };
    Ok(forms.into_iter().map(requirement).collect())
}

impl<'de> Deserialize<'de> for RequirementForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = RequirementForm;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a condition such as `torch.version >= 2.6`, or a map with it under `that`")
            }

            fn visit_str<E>(self, text: &str) -> Result<RequirementForm, E> {
                Ok(RequirementForm::Short(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RequirementForm, A::Error> {
                Requirement::deserialize(MapAccessDeserializer::new(map)).map(RequirementForm::Long)
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
