//! Rules for the requirements of a policy.

use std::sync::LazyLock;

use cel::common::ast::{Expr, IdedExpr};
use regex::Regex;

use super::condition::{Condition, ConditionError, fact, facts_of, operands, path};
use super::fix::FixTemplate;
use super::message::Message;
use super::schema::Examples;
use super::{Evidence, Rule};
use facts::key::{self, Definition, Type};
use model::{Owner, Severity, Version};

/// A requirement of a policy.
#[derive(Clone, Debug)]
pub struct Required<'p> {
    /// Name of the rule, without its area `require`; derived from the condition by default.
    pub id: Option<&'p str>,
    /// `torch.version >= 2.6`, or a condition in CEL.
    pub that: &'p str,
    /// The author's reason.
    pub because: Option<&'p str>,
    /// Severity of a violation.
    pub severity: Severity,
    /// File and line of the requirement.
    pub place: &'p str,
}

impl Rule {
    /// Makes a rule of a requirement. The rule fails if a fact that it uses is absent.
    pub fn required(required: &Required<'_>) -> Result<Self, super::ConditionError> {
        let source = in_cel(required.that);
        // Places in the CEL of a short form mean nothing to its author, so an error marks the whole text.
        let told = |wrong: ConditionError| {
            let part = if source == required.that { wrong.part } else { 0..required.that.len() };
            ConditionError { part, ..wrong }
        };
        let condition = Condition::compile(&source).map_err(told)?;
        let mut names = Names::default();
        names.gather(condition.root(), &mut Vec::new());
        let guarded =
            names.unguarded().rev().fold(format!("({source})"), |check, name| format!("has({name}) && {check}"));
        let check = Condition::compile(&guarded).map_err(told)?;
        let keys = unique(facts_of(check.root()));
        let named: Vec<String> = keys.iter().map(|key| format!("{} is {{{}}}", key.name, key.name)).collect();
        let message = format!("{}; {} requires ", named.join(", "), required.place);
        let id = required.id.map_or_else(|| slug(required.that), ToOwned::to_owned);
        if !super::is_name(&id) {
            let what = format!("invalid id '{id}': use lower-case letters, digits and dashes");
            return Err(ConditionError {
                part: 0..required.that.len(),
                what,
                help: Some("give the requirement an id".to_owned()),
            });
        }
        let fix =
            format!("Build the image so that it meets the requirement, or change the policy ({}).", required.place);
        Ok(Self {
            shipped: None,
            id: format!("require/{id}"),
            file: required.place.to_owned(),
            title: format!("requirement of the policy not met: {}", required.that),
            without: None,
            severity: required.severity,
            owner: owner(&keys),
            since: String::new(),
            why: required.because.unwrap_or("The policy requires it.").to_owned(),
            remedy: FixTemplate::plain(fix.clone()),
            fix,
            change: None,
            edit: None,
            explains: Vec::new(),
            references: Vec::new(),
            examples: Examples::default().into(),
            applies: None,
            check,
            message: Message::parse(&message)?.and_text(required.that),
            evidence: keys.into_iter().map(|key| Evidence { key, entry: None }).collect(),
        })
    }
}

/// A requirement of the host alone is its administrator's to meet.
fn owner(keys: &[&'static Definition]) -> Owner {
    let is_of_host = !keys.is_empty() && keys.iter().all(|key| key.name.starts_with("host."));
    if is_of_host { Owner::Host } else { Owner::Image }
}

/// Translates the short form, a comparison of a version fact with a number, into CEL; returns any other text unchanged.
fn in_cel(that: &str) -> String {
    static SHORT: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^\s*([a-z_.0-9]+)\s*(==|!=|>=|<=|<|>)\s*([0-9][^\s'()]*)\s*$").ok());
    let short = SHORT.as_ref().and_then(|form| form.captures(that)).and_then(|parts| {
        let name = parts.get(1)?.as_str();
        let operator = parts.get(2)?.as_str();
        let text = parts.get(3)?.as_str();
        let is_version = key::find(name).is_some_and(|key| key.kind == Type::Version);
        (is_version && Version::parse(text).is_some()).then(|| format!("version({name}) {operator} version('{text}')"))
    });
    short.unwrap_or_else(|| that.to_owned())
}

/// Facts, and entries of map facts, that a condition names.
#[derive(Default)]
struct Names {
    /// Names whose values the condition uses.
    used: Vec<String>,
    /// Names that the condition tests with `has()`.
    asked: Vec<String>,
}

impl Names {
    fn gather<'e>(&mut self, expression: &'e IdedExpr, bound: &mut Vec<&'e str>) {
        match &expression.expr {
            Expr::Ident(_) | Expr::Select(_) => match path(expression) {
                (Some(root), parts) if !bound.contains(&root) => {
                    let Some((key, own)) = fact(root, &parts) else { return };
                    let entry = parts.get(own).filter(|_| key.kind == Type::Map);
                    let name = entry.map_or_else(|| key.name.to_owned(), |entry| format!("{}.{entry}", key.name));
                    let is_test = matches!(&expression.expr, Expr::Select(select) if select.test);
                    if is_test { self.asked.push(name) } else { self.used.push(name) }
                }
                (Some(_), _) => {}
                (None, _) => {
                    if let Expr::Select(select) = &expression.expr {
                        self.gather(&select.operand, bound);
                    }
                }
            },
            Expr::Call(call) => operands(call).for_each(|part| self.gather(part, bound)),
            Expr::List(list) => list.elements.iter().for_each(|part| self.gather(part, bound)),
            Expr::Comprehension(each) => {
                self.gather(&each.iter_range, bound);
                bound.extend([each.iter_var.as_str(), each.accu_var.as_str()]);
                self.gather(&each.loop_step, bound);
                bound.truncate(bound.len() - 2);
            }
            Expr::Map(_) | Expr::Struct(_) | Expr::Literal(_) | Expr::Unspecified => {}
        }
    }

    /// Names that are used without a test, each once.
    fn unguarded(&self) -> impl DoubleEndedIterator<Item = &String> {
        let is_new = |(index, name): &(usize, &String)| !self.used.iter().take(*index).any(|other| other == *name);
        self.used.iter().enumerate().filter(is_new).map(|(_, name)| name).filter(|name| !self.asked.contains(name))
    }
}

fn unique(keys: Vec<&'static Definition>) -> Vec<&'static Definition> {
    let mut unique: Vec<&'static Definition> = Vec::new();
    for key in keys {
        if !unique.iter().any(|known| known.name == key.name) {
            unique.push(key);
        }
    }
    unique
}

/// Derives a name from a condition: `torch-version-2-6` from `torch.version >= 2.6`.
fn slug(text: &str) -> String {
    let plain: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let words = plain.split('-').filter(|word| !word.is_empty());
    words.take(8).map(|word| word.get(..16).unwrap_or(word)).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_of_the_host_is_its_owners() {
        let owner = |that: &str| {
            let required =
                Required { id: None, that, because: None, severity: Severity::Error, place: "policy.yaml:3" };
            Rule::required(&required).unwrap().owner
        };
        assert_eq!(owner("host.driver >= 570.10"), Owner::Host);
        assert_eq!(owner("!has(host.rdma) || host.rdma == 'efa'"), Owner::Host);
        assert_eq!(owner("torch.version >= 2.6"), Owner::Image);
        assert_eq!(owner("has(host.driver) && has(torch.version)"), Owner::Image);
    }
}
