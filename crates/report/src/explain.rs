//! Renders how the dynamic loader finds a library.

use std::io::{self, Write};

use serde_json::json;

use super::human::{Style, tree};
use super::{Format, json};
use facts::explain::{Account, LoaderSearch, NameExplanation, SearchEnd};
use model::{Gap, ImageSummary};

/// Explanation of library searches in one image.
#[derive(Debug)]
pub struct Explanation<'a> {
    /// The image.
    pub image: &'a ImageSummary,
    /// An account for each CPU level that makes a difference, or the reason why there is none.
    pub accounts: &'a Result<Vec<Account>, Gap>,
}

impl Explanation<'_> {
    /// Writes the explanation: one JSON object on one line for [`Format::Json`], else text for people.
    pub fn write(&self, format: Format, style: &Style, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Json => json::write_value(&self.value(), out),
            _ => tree::write(self.image, self.accounts, style, out),
        }
    }

    fn value(&self) -> serde_json::Value {
        let (accounts, gap) = match self.accounts {
            Ok(accounts) => (accounts.as_slice(), None),
            Err(gap) => (&[][..], Some(gap.to_string())),
        };
        json!({
            "schema": "ncclcheck-explanation/1",
            "image": self.image.reference,
            "gap": gap,
            "processes": accounts.iter().map(process).collect::<Vec<_>>(),
        })
    }
}

fn process(account: &Account) -> serde_json::Value {
    json!({
        "program": account.program.to_string(),
        "imports_torch": account.imports_torch,
        "processor": account.level.map(|level| level.to_string()),
        "failure": account.failure,
        "mapped": account.mapped.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "answers": account.answers.iter().map(answer).collect::<Vec<_>>(),
    })
}

fn answer(answer: &NameExplanation) -> serde_json::Value {
    json!({
        "name": answer.name,
        "found": answer.found.as_ref().map(ToString::to_string),
        "supposed": answer.is_supposed,
        "later": answer.is_later,
        "error": answer.error,
        "gap": answer.gap.as_ref().map(ToString::to_string),
        "searches": answer.searches.iter().map(search).collect::<Vec<_>>(),
    })
}

fn search(search: &LoaderSearch) -> serde_json::Value {
    let steps = search.steps.iter().map(|step| {
        let end = match &step.end {
            SearchEnd::Taken(_) | SearchEnd::SameFile(_) => "taken",
            SearchEnd::Missing => "missing",
            SearchEnd::Dangling => "dangling",
            SearchEnd::Loop => "loop",
            SearchEnd::OtherClass(_) | SearchEnd::Foreign(_) => "foreign",
            SearchEnd::Denied(_) => "denied",
            SearchEnd::Refused(_) => "refused",
            SearchEnd::Undecided(_) => "undecided",
        };
        json!({ "rule": step.route.to_string(), "path": step.path, "end": end, "why": step.end.to_string() })
    });
    json!({
        "name": search.name,
        "by": search.by,
        "found": search.found.as_ref().map(ToString::to_string),
        "steps": steps.collect::<Vec<_>>(),
    })
}
