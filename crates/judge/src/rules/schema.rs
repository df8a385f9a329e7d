//! The format of a rule file.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;

use facts::Facts;
use facts::key::{self, Definition, KEYS, Type};
use model::document::{Document, DocumentError, Entries, Spanned};
use model::{Fact, Owner, Severity, suggestion};

use crate::shipped::Shipped;

use super::change::{RuleChange, RuleEdit};
use super::condition::{Condition, ConditionError};
use super::fix::FixTemplate;
use super::message::{Message, named};
use super::{Evidence, Rule, is_name};

/// An ncclcheck rule.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "ncclcheck rule")]
struct RuleDocument {
    /// Area and name, which match the names of the folder and the file: nccl/missing-library.
    #[schemars(with = "String", regex(pattern = "^[a-z0-9-]+/[a-z0-9-]+$"))]
    id: Spanned<String>,
    /// The problem that the rule detects, in a few words.
    #[schemars(with = "String")]
    title: Spanned<String>,
    /// What a job does not have where the rule fails, in a few words for the first line of a report: RDMA between hosts.
    without: Option<String>,
    /// Severity of a failure.
    severity: Severity,
    /// The party that has to fix a failure; image by default.
    #[serde(default)]
    owner: Owner,
    /// The release of ncclcheck that introduced the rule; empty for your own rules.
    #[serde(default)]
    since: String,
    /// CEL condition: if false, the rule does not apply.
    #[schemars(with = "Option<String>")]
    applies: Option<Spanned<String>>,
    /// CEL condition: true is a pass, false is a failure.
    #[schemars(with = "String")]
    check: Spanned<String>,
    /// Message of a failure; {name.of.a.fact} is replaced by the fact's value.
    #[schemars(with = "String")]
    message: Spanned<String>,
    /// Facts whose sites a failure shows.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    evidence: Vec<Spanned<String>>,
    /// Explanation of why the problem matters.
    why: String,
    /// Instructions and lines to copy; {name.of.a.fact} is replaced by the fact's value, and a step whose facts have none is left out.
    #[schemars(with = "String")]
    fix: Spanned<String>,
    /// The mechanical part of the fix, for `ncclcheck check --fix`.
    change: Option<RuleChange>,
    /// Edits of the launch file that settle a failure, by form, for `ncclcheck check --fix`.
    edit: Option<RuleEdit>,
    /// Rules whose findings and missing answers follow from a failure, by id or pattern: runtime/*.
    #[serde(default)]
    explains: Vec<String>,
    /// URLs of the sources.
    #[serde(default)]
    references: Vec<String>,
    /// Facts with known outcomes, as documentation and tests.
    #[serde(default)]
    examples: Examples,
}

/// Facts for which a rule's outcome is known. They document and test the rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Examples {
    /// Examples that pass.
    #[serde(default)]
    #[schemars(with = "Vec<Example>")]
    pub pass: Vec<Spanned<Example>>,
    /// Examples that fail.
    #[serde(default)]
    #[schemars(with = "Vec<Example>")]
    pub fail: Vec<Spanned<Example>>,
    /// Examples to which the rule does not apply.
    #[serde(default)]
    #[schemars(with = "Vec<Example>")]
    pub not_applicable: Vec<Spanned<Example>>,
    /// Examples for which the outcome is unknown.
    #[serde(default)]
    #[schemars(with = "Vec<Example>")]
    pub unknown: Vec<Spanned<Example>>,
}

/// The facts of one example; all other facts are absent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// Values by fact name.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    facts: Entries<serde_json::Value>,
    /// Facts that could not be determined.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    unknown: Vec<Spanned<String>>,
    /// The expected message of the failure.
    pub message: Option<String>,
}

impl Examples {
    /// The examples of a built-in rule.
    #[expect(clippy::expect_used, reason = "constant documents, each read by a test")]
    pub(super) fn of_builtin(id: &str, text: &str) -> Self {
        Document { name: id, text }.parse::<RuleDocument>().expect("a valid rule").examples
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Spanned<Example>> {
        [&self.pass, &self.fail, &self.not_applicable, &self.unknown].into_iter().flatten()
    }
}

impl Example {
    /// Names and values of the known facts, as written.
    pub fn known(&self) -> impl Iterator<Item = (&str, &serde_json::Value)> {
        self.facts.0.iter().map(|(name, value)| (&*name.value, &value.value))
    }

    /// Names of the unknown facts.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.unknown.iter().map(|name| &*name.value)
    }

    /// The example's facts, which were validated when the rule was read.
    pub fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        for (name, value) in self.known() {
            if let Some((key, value)) = key::find(name).and_then(|key| Some((key, key.read(value)?))) {
                facts.insert_value(key, Fact::known(value));
            }
        }
        for key in self.unknown().filter_map(key::find) {
            facts.insert_value(key, Fact::unknown(format!("{} was not determined", key.name)));
        }
        facts
    }

    fn check(&self, document: Document<'_>) -> Result<(), DocumentError> {
        let names = self.facts.0.iter().map(|(name, _)| name).chain(&self.unknown);
        names.map(|name| fact(name, document)).collect::<Result<Vec<_>, _>>()?;
        for (name, value) in &self.facts.0 {
            if let Some(key) = key::find(&name.value)
                && key.read(&value.value).is_none()
            {
                let help = value.value.is_number() && key.kind == Type::Version;
                let what = format!("{} must be {}", name.value, key.expected());
                let mistake = document.mistake(value, what);
                return Err(mistake.help(help.then(|| "write it in quotes".to_owned())));
            }
        }
        Ok(())
    }
}

/// Finds a fact by its name in a document.
fn fact(name: &Spanned<String>, document: Document<'_>) -> Result<&'static Definition, DocumentError> {
    key::find(&name.value).ok_or_else(|| {
        let help = suggestion(&name.value, KEYS.iter().map(|key| key.name));
        document.mistake(name, format!("there is no fact '{}'", name.value)).help(help)
    })
}

/// The JSON schema of rules, for editors.
pub fn schema() -> String {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<RuleDocument>();
    format!("{:#}\n", schema.as_value())
}

impl Rule {
    /// Reads one rule. `id` is the id that the file's folder and name give.
    pub(crate) fn parse(id: &str, document: Document<'_>) -> Result<Self, DocumentError> {
        let rule = Self::read(id, document, document.parse()?, false)?;
        for example in rule.examples().iter() {
            example.value.check(document)?;
        }
        Ok(rule)
    }

    /// Reads a built-in rule, whose conditions and examples the tests check, without its examples.
    #[expect(clippy::expect_used, reason = "constant documents, each read by a test")]
    pub(super) fn builtin(id: &str, json: &str, shipped: &'static Shipped) -> Result<Self, DocumentError> {
        let read = serde_json::from_str(json).expect("a valid rule");
        let rule = Self::read(id, Document { name: &format!("rules/{id}.yaml"), text: "" }, read, true)?;
        Ok(Self { shipped: Some(shipped), examples: OnceLock::new(), ..rule })
    }

    fn read(id: &str, document: Document<'_>, file: RuleDocument, is_trusted: bool) -> Result<Self, DocumentError> {
        if file.id.value != id {
            let what = format!("the id is '{}', but the file's folder and name give '{id}'", file.id.value);
            return Err(document.mistake(&file.id, what).help(Some("rename the file or the rule".to_owned())));
        }
        if !id.split_once('/').is_some_and(|(area, name)| is_name(area) && is_name(name)) {
            let what = format!("invalid id '{id}': use AREA/NAME in lower-case letters, digits and dashes");
            return Err(document.mistake(&file.id, what));
        }
        if file.title.value.trim().is_empty() {
            return Err(document.mistake(&file.title, "the title is empty"));
        }
        if let Some(edit) = file.edit.as_ref().filter(|_| !is_trusted) {
            edit.check().map_err(|why| document.mistake_of("edit", why))?;
        }
        let compile = |text: &str| {
            if is_trusted { Ok(Condition::trusted(text.to_owned())) } else { Condition::compile(text) }
        };
        let fix = file.fix.value.trim_end();
        let within = |text: &Spanned<String>, wrong: ConditionError| {
            document.mistake_within(text, wrong.part, wrong.what).help(wrong.help)
        };
        let condition = |text: &Spanned<String>| compile(&text.value).map_err(|wrong| within(text, wrong));
        let evidence = file.evidence.iter().map(|name| match named(&name.value) {
            Some((key, entry)) => Ok(Evidence { key, entry }),
            None => fact(name, document).map(|key| Evidence { key, entry: None }),
        });
        Ok(Self {
            applies: file.applies.as_ref().map(condition).transpose()?,
            check: condition(&file.check)?,
            message: Message::parse(file.message.value.trim_end()).map_err(|wrong| within(&file.message, wrong))?,
            evidence: evidence.collect::<Result<_, _>>()?,
            shipped: None,
            id: file.id.value,
            file: document.name.to_owned(),
            title: file.title.value,
            without: file.without,
            severity: file.severity,
            owner: file.owner,
            since: file.since,
            why: file.why.trim_end().to_owned(),
            remedy: if is_trusted {
                FixTemplate::trusted(fix.to_owned())
            } else {
                FixTemplate::parse(fix, &compile).map_err(|wrong| within(&file.fix, wrong))?
            },
            fix: FixTemplate::page(fix),
            change: file.change,
            edit: file.edit,
            explains: file.explains,
            references: file.references,
            examples: file.examples.into(),
        })
    }
}
