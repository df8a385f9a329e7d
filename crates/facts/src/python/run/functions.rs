//! The functions of a program, where they are called.

use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use super::super::super::pattern;
use super::super::expression::{closed, split, string};
use super::super::source::{PythonSource, Statement, first_word};
use super::{DEPTH, ModuleName, ProgramRun};

pattern!(WORD, r"(?u)[A-Za-z_][\w.]*");

/// Calls that run a function which is their argument.
const RUNNERS: &[&str] = &["spawn(", "target=", "Fire(", "run("];

/// A function of the code that runs.
#[derive(Clone)]
pub(super) struct Function {
    source: Rc<PythonSource>,
    body: Range<usize>,
    /// Each parameter, and its default.
    parameters: Vec<(String, Option<String>)>,
    module: Rc<ModuleName>,
    /// True if a decorator may call it, or have it called.
    is_registered: bool,
    /// True for a kernel of Triton.
    pub(super) is_kernel: bool,
}

impl ProgramRun<'_, '_> {
    /// Notes a function; the statements of a class run.
    pub(super) fn define(&mut self, source: &Rc<PythonSource>, header: &Statement, body: Range<usize>) {
        let text = header.text.trim_start_matches("async").trim_start();
        let name = first_word(text.get(first_word(text).len()..).unwrap_or_default().trim_start()).to_owned();
        if text.starts_with("class") {
            let module = ModuleName {
                prefix: format!("{}{name}.", self.module.prefix),
                package: self.module.package.clone(),
                is_main: self.module.is_main,
            };
            let outer = std::mem::replace(&mut self.module, Rc::new(module));
            let names = self.names.full.clone();
            self.path.files.budget.spend(names.len() / 16);
            self.block(source, body);
            self.names.full = names;
            self.module = outer;
            return;
        }
        let parameters =
            text.split_once('(').and_then(|(_, rest)| closed(rest)).map_or("", |(parameters, _)| parameters);
        let parameters = split(parameters, ',').unwrap_or_default();
        let parameters = parameters.into_iter().map(|one| {
            let (name, default) = one.split_once('=').map_or((one, None), |(name, default)| (name, Some(default)));
            (
                first_word(name.trim()).to_owned(),
                default.and_then(|default| self.scoped(|scope| string(default, scope))),
            )
        });
        let before = body.start.checked_sub(2).and_then(|before| source.statements.get(before));
        let function = Function {
            source: Rc::clone(source),
            parameters: parameters.filter(|(name, _)| !name.is_empty()).collect(),
            module: Rc::clone(&self.module),
            is_registered: before.is_some_and(|before| registers(&before.text)),
            is_kernel: before.is_some_and(|before| self.written(&before.text) == "@triton.jit"),
            body,
        };
        self.bind(&name, None);
        self.functions.insert(format!("{}{name}", self.module.prefix), function);
    }

    /// Runs the functions that a statement calls.
    pub(super) fn calls(&mut self, text: &str) {
        if self.functions.is_empty() {
            return;
        }
        let is_branch = [" if ", " and ", " or ", " for ", "lambda"].iter().any(|word| text.contains(word));
        for found in WORD.find_iter(text.as_bytes()) {
            let Some(name) = text.get(found.range()).filter(|name| self.functions.contains_key(*name)) else {
                continue;
            };
            let before = text.get(..found.start()).unwrap_or_default();
            let arguments = text.get(found.end()..).and_then(|rest| rest.strip_prefix('('));
            let is_run = arguments.is_some() || RUNNERS.iter().any(|runner| before.ends_with(runner));
            let doubtful = self.path.is_doubtful;
            self.path.is_doubtful |= is_branch || !is_run;
            let arguments = arguments.and_then(closed).and_then(|(arguments, _)| split(arguments, ','));
            // What is only named is called with other arguments.
            let arguments = arguments.unwrap_or_else(|| vec!["*arguments"]);
            self.call(name, &arguments);
            self.path.is_doubtful = doubtful;
        }
    }

    fn call(&mut self, name: &str, arguments: &[&str]) {
        let Some(function) = self.functions.get(name).cloned() else { return };
        let is_spread = arguments.iter().any(|argument| argument.trim().starts_with('*'));
        let arguments = arguments.iter().map(|argument| argument.trim()).filter(|argument| !argument.is_empty());
        let given: Vec<_> = arguments
            .map(|argument| {
                let (name, value) = named(argument).map_or((None, argument), |(name, value)| (Some(name), value));
                (name, self.scoped(|scope| string(value, scope)))
            })
            .collect();
        let is_certain = !self.path.is_doubtful;
        let is_known = self.called.get(name).is_some_and(|before| *before || !is_certain);
        let is_same = is_known && !given.iter().any(|(_, value)| value.is_some());
        if self.depth > DEPTH || is_same || !self.active.insert(name.to_owned()) {
            return;
        }
        self.called.insert(name.to_owned(), is_certain || is_known);
        let names = self.names.clone();
        self.path.files.budget.spend((names.full.len() + names.texts.len()) / 16);
        let module = std::mem::replace(&mut self.module, Rc::clone(&function.module));
        if let Some(full) = self.spaces.get(&function.module.prefix).filter(|_| module.prefix != function.module.prefix)
        {
            self.path.files.budget.spend(full.len() / 16);
            self.names.full.clone_from(full);
        }
        let at = self.path.at.clone();
        for (index, (parameter, default)) in function.parameters.iter().enumerate() {
            let named = given.iter().find(|(name, _)| *name == Some(parameter));
            let given = named.or_else(|| given.get(index).filter(|(name, _)| name.is_none()));
            let value = given.map_or_else(|| default.clone(), |(_, value)| value.clone());
            self.give(parameter, value.filter(|_| !is_spread));
        }
        self.block(&function.source, function.body.clone());
        self.active.remove(name);
        self.path.at = at;
        // What it declares as global keeps its value.
        let body = function.source.statements.get(function.body.clone()).unwrap_or_default();
        let globals = body.iter().filter_map(|statement| statement.text.strip_prefix("global "));
        let globals = globals.flat_map(|names| names.split(',')).map(str::trim);
        let value = |name| self.names.texts.get(&format!("{}{name}", self.module.prefix)).cloned();
        let globals: Vec<_> = globals.map(|name| (name, value(name))).collect();
        self.names = names;
        for (name, value) in globals {
            self.bind(name, value);
        }
        self.module = module;
    }

    /// Runs, in doubt, the functions that nothing certain calls and whose names the code mentions.
    pub(super) fn uncalled(&mut self) {
        let uncalled: Vec<_> = self.functions.keys().filter(|name| !self.called.contains_key(*name)).cloned().collect();
        let sources = std::mem::take(&mut self.sources);
        let mut words = BTreeSet::new();
        for statement in sources.iter().flat_map(|source| &source.statements) {
            let text = statement
                .text
                .strip_prefix("def ")
                .map_or(&*statement.text, |rest| rest.split_once('(').map_or("", |(_, rest)| rest));
            words.extend(text.split(|c: char| !c.is_alphanumeric() && c != '_'));
        }
        self.path.is_doubtful = true;
        for name in uncalled {
            let own = name.rsplit('.').next().unwrap_or_default();
            let is_registered = self.functions.get(&name).is_some_and(|function| function.is_registered);
            if self.has_unread_calls || is_registered || own.starts_with("__") || words.contains(own) {
                self.call(&name, &["*arguments"]);
            }
        }
        self.path.is_doubtful = false;
    }
}

/// Returns true for a decorator that may call the function, or have it called.
fn registers(decorator: &str) -> bool {
    const OTHERS: &str = "abstractmethod cache cached_property classmethod compile contextmanager inference_mode lru_cache \
        no_grad overload override property setter staticmethod wraps";
    let name = decorator.strip_prefix('@').and_then(|text| text.split('(').next()?.rsplit('.').next());
    name.is_some_and(|name| !model::is_among(name.trim(), OTHERS))
}

/// The name and the value of an argument that is given by its name.
fn named(argument: &str) -> Option<(&str, &str)> {
    let (name, value) = argument.split_once('=')?;
    let name = name.trim();
    (first_word(name) == name && !value.starts_with('=')).then_some((name, value))
}
