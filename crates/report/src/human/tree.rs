//! The dynamic loader's search for a library as a tree: the requesting object, and below it every place searched, in
//! order.

use std::io::{self, Write};

use anstyle::AnsiColor;

use super::page::{self, Page, label};
use super::{Style, notes};
use facts::explain::{Account, LoaderSearch, NameExplanation, Route, SearchEnd, SearchStep};
use model::{Gap, ImageSummary};

pub(crate) fn write(
    image: &ImageSummary,
    accounts: &Result<Vec<Account>, Gap>,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut page = Page::new(out, style);
    match accounts {
        Ok(accounts) => accounts.iter().try_for_each(|account| process(account, style.verbose, &mut page))?,
        Err(gap) => page.heading("unknown:", page::bold(AnsiColor::Magenta), &gap.to_string())?,
    }
    notes(&image.notes, &mut page)
}

fn process(account: &Account, verbose: bool, page: &mut Page<'_>) -> io::Result<()> {
    let what = if account.imports_torch { " that imports torch" } else { "" };
    let on = account.level.map(|level| format!(", on a CPU of level {level}")).unwrap_or_default();
    page.text(0, &format!("In a process of {}{what}{on}:", account.program))?;
    for answer in &account.answers {
        page.blank()?;
        one(answer, verbose, page)?;
    }
    if let Some(failure) = &account.failure {
        page.blank()?;
        page.heading("it fails:", page::bold(AnsiColor::Red), failure)?;
    }
    Ok(())
}

fn one(answer: &NameExplanation, verbose: bool, page: &mut Page<'_>) -> io::Result<()> {
    let (end, look) = match (&answer.found, &answer.gap) {
        (Some(path), _) => (path.to_string(), AnsiColor::Green),
        (None, Some(gap)) => (format!("unknown: {gap}"), AnsiColor::Magenta),
        (None, None) => ("not found".to_owned(), AnsiColor::Red),
    };
    page.heading(&answer.name, page::bold(look), &format!("→ {end}"))?;
    if answer.is_later {
        page.text(2, "The process fails before this library is mapped, which then searches:")?;
    }
    if answer.is_supposed {
        page.text(2, "No library needs it before NCCL runs; dlopen would search:")?;
    }
    // Later requests get the object that is already loaded.
    let is_repeated = |search: &&LoaderSearch| matches!(search.steps.as_slice(), [only] if only.route == Route::Loaded);
    for search in answer.searches.iter().filter(|search| !is_repeated(search)) {
        steps(search, verbose, page)?;
    }
    let repeated: Vec<_> = answer.searches.iter().filter(is_repeated).collect();
    if let [first, rest @ ..] = repeated.as_slice() {
        let shown = if verbose { rest.len() } else { rest.len().min(2) };
        page.text(2, "already loaded when it is")?;
        for search in std::iter::once(first).chain(rest.iter().take(shown)) {
            page.verbatim(2, label(""), 2, &format!("├─ {}", search.by))?;
        }
        match rest.len() - shown {
            0 => page.text(2, "╵")?,
            more => page.text(2, &format!("╰─ and {more} more (-v lists them)"))?,
        }
    }
    Ok(())
}

/// Writes one search, with the places of one search rule under one heading.
fn steps(search: &LoaderSearch, verbose: bool, page: &mut Page<'_>) -> io::Result<()> {
    let other = if search.name.contains('/') { format!(" as {}", search.name) } else { String::new() };
    page.verbatim(2, label(""), 2, &format!("{}{other}", search.by))?;
    let groups: Vec<&[SearchStep]> = search.steps.chunk_by(|a, b| rule(&a.route) == rule(&b.route)).collect();
    for (index, group) in groups.iter().enumerate() {
        let is_last = index + 1 == groups.len();
        let (branch, trunk) = if is_last { ("╰─ ", "   ") } else { ("├─ ", "│  ") };
        let Some(first) = group.first() else { continue };
        page.verbatim(2, label(""), 2, &format!("{branch}{}", rule(&first.route)))?;
        for (index, step) in group.iter().enumerate() {
            let is_last = index + 1 == group.len();
            let (branch, below) = if is_last { ("╰─ ", "   ") } else { ("├─ ", "│  ") };
            place(step, &format!("{trunk}{branch}"), &format!("{trunk}{below}"), verbose, page)?;
        }
    }
    Ok(())
}

/// Writes one place and its result, with the path if it adds to the heading.
fn place(step: &SearchStep, branch: &str, below: &str, verbose: bool, page: &mut Page<'_>) -> io::Result<()> {
    let entry = match &step.route {
        Route::Rpath(entry)
        | Route::InheritedRpath(entry, _)
        | Route::LibraryPath(entry)
        | Route::Runpath(entry)
        | Route::Default(entry)
            if !entry.is_empty() =>
        {
            entry
        }
        _ => &step.path,
    };
    let look = match step.end {
        SearchEnd::Taken(_) | SearchEnd::SameFile(_) => page::bold(AnsiColor::Green),
        SearchEnd::Missing => anstyle::Style::new().dimmed(),
        _ => page::bold(AnsiColor::Yellow),
    };
    let end = match &step.end {
        SearchEnd::Taken(_) => "taken".to_owned(),
        SearchEnd::SameFile(_) => "taken, already loaded".to_owned(),
        other => other.to_string(),
    };
    page.branch(2, branch, below, entry, (&end, look))?;
    match &step.end {
        SearchEnd::Taken(path) | SearchEnd::SameFile(path) => {
            page.verbatim(2, label(""), 2, &format!("{below}  = {path}"))
        }
        SearchEnd::Missing if !verbose => Ok(()),
        _ if *entry == step.path => Ok(()),
        _ => page.verbatim(2, label(""), 2, &format!("{below}  {}", step.path)),
    }
}

/// The heading of the places of one search rule.
fn rule(route: &Route) -> String {
    match route {
        Route::Loaded => "already loaded".to_owned(),
        Route::Path => "by its path".to_owned(),
        Route::Rpath(_) => "DT_RPATH".to_owned(),
        Route::InheritedRpath(_, of) => format!("DT_RPATH of {of}"),
        Route::LibraryPath(_) => "LD_LIBRARY_PATH".to_owned(),
        Route::Runpath(_) => "DT_RUNPATH".to_owned(),
        Route::Cache => "/etc/ld.so.cache".to_owned(),
        Route::Configured(file) => format!("ldconfig at the start, by {file}"),
        Route::Default(_) => "default directories".to_owned(),
    }
}
