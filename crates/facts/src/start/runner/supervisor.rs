//! The programs that supervisord starts (Supervisor's manual, "Configuration File"). Its configuration is followed as a script with a
//! line for each program.

use model::ImagePath;
use shell::{Field, ShellGap, ShellKind, ShellSource, ShellState};

use super::{Outcome, Runner, Start};

/// Where supervisord looks for its configuration without `-c`.
const USUAL: [&str; 3] = ["supervisord.conf", "/etc/supervisord.conf", "/etc/supervisor/supervisord.conf"];

/// Characters that a shell would read in an unquoted word and supervisord does not.
const OF_SHELL: &str = "$`;|&<>()*?#~{}[]!";

/// A section of a configuration: its name, and its keys with their lines, from 1.
struct Section {
    name: String,
    keys: Vec<(String, String, usize)>,
}

impl Section {
    fn get(&self, key: &str) -> Option<&str> {
        self.keys.iter().rev().find(|(own, ..)| own == key).map(|(_, value, _)| value.as_str())
    }
}

/// Follows the programs of a supervisord with these words behind its name.
pub(super) fn run(runner: &mut Runner<'_>, start: &Start<'_>, state: &ShellState, rest: &[Field]) -> Outcome {
    let words: Vec<&str> = rest.iter().filter_map(|word| word.as_deref().ok()).collect();
    let behind = |(index, word): (usize, &&str)| match word.strip_prefix("--configuration=") {
        Some(path) => Some(path.to_owned()),
        None if matches!(*word, "-c" | "--configuration") => words.get(index + 1).map(|path| (*path).to_owned()),
        None => None,
    };
    let named = words.iter().enumerate().find_map(behind);
    let directory = ImagePath::from(state.directory.clone()?.as_str());
    let usual =
        || USUAL.iter().map(|path| directory.join(path.as_bytes())).find(|path| runner.rootfs.open(path).is_ok());
    let main = named.map(|path| directory.join(path.as_bytes())).or_else(usual);
    let main = main.ok_or_else(|| Runner::gap(start, "supervisord has no configuration"))?;
    let mut files = vec![main.clone()];
    let sections = sections(runner, start, &main)?;
    let included =
        sections.iter().filter(|section| section.name == "include").filter_map(|section| section.get("files"));
    for pattern in included.flat_map(str::split_whitespace) {
        let pattern = main.parent().join(pattern.as_bytes());
        let Some((before, behind)) =
            std::str::from_utf8(pattern.file_name()).ok().and_then(|name| name.split_once('*'))
        else {
            files.push(pattern);
            continue;
        };
        let folder = pattern.parent();
        let names = runner.rootfs.names_with(&folder, before.as_bytes());
        files.extend(names.filter(|name| name.ends_with(behind.as_bytes())).map(|name| folder.join(name)));
    }
    let shared =
        sections.iter().find(|section| section.name == "supervisord").and_then(|section| section.get("environment"));
    let shared = shared.map(str::to_owned).unwrap_or_default();
    let mut sources = Vec::new();
    for file in files {
        let mut lines = Vec::new();
        for section in self::sections(runner, start, &file)? {
            if let Some((line, text)) = program(&section, &shared, &file).map_err(|why| Runner::gap(start, &why))? {
                lines.resize(lines.len().max(line), String::new());
                if let Some(own) = lines.get_mut(line - 1) {
                    *own = text;
                }
            }
        }
        sources.push(ShellSource { name: file.to_string(), text: lines.join("\n") });
    }
    runner.evaluate(&mut state.child(ShellKind::Posix, "sh"), &sources)
}

/// The sections of a configuration.
fn sections(runner: &Runner<'_>, start: &Start<'_>, file: &ImagePath) -> Result<Vec<Section>, ShellGap> {
    let Some(Ok(text)) = runner.read(file) else {
        return Err(Runner::gap(start, &format!("{file}, which supervisord reads, was not read")));
    };
    let mut sections: Vec<Section> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let bare =
            [" ;", " #", "\t;", "\t#"].iter().fold(line, |line, mark| line.split(mark).next().unwrap_or_default());
        let trimmed = bare.trim();
        let is_inner = line.starts_with([' ', '\t']);
        if trimmed.is_empty() || trimmed.starts_with([';', '#']) {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            sections.push(Section { name: name.to_owned(), keys: Vec::new() });
            continue;
        }
        let Some(section) = sections.last_mut() else { continue };
        match (section.keys.last_mut(), trimmed.split_once('=')) {
            (Some((_, value, _)), _) if is_inner => value.extend([" ", trimmed]),
            (_, Some((key, value))) => section.keys.push((key.trim().to_owned(), value.trim().to_owned(), index + 1)),
            (_, None) => {}
        }
    }
    Ok(sections)
}

/// The line and the text of the command that starts a program; `None` for any other section and for one that waits.
fn program(section: &Section, shared: &str, file: &ImagePath) -> Result<Option<(usize, String)>, String> {
    let Some(name) = section.name.strip_prefix("program:") else { return Ok(None) };
    let waits = section.get("autostart").is_some_and(|value| matches!(value, "false" | "no" | "off" | "0"));
    let Some((_, command, line)) = section.keys.iter().rev().find(|(key, ..)| key == "command").filter(|_| !waits)
    else {
        return Ok(None);
    };
    if section.get("user").is_some_and(|user| user != "root") {
        return Err(format!("supervisord starts {name} as another user"));
    }
    let here = file.parent().to_string();
    let expanded =
        |text: &str| expanded(text, name, &here).ok_or_else(|| format!("supervisord computes a value of {name}"));
    let variables = [shared, section.get("environment").unwrap_or_default()].map(expanded);
    let [shared, own] = variables;
    let mut exports = String::new();
    for setting in separated(&shared?).into_iter().chain(separated(&own?)) {
        exports.extend(["export ", &setting, "; "]);
    }
    let enter =
        section.get("directory").map(|folder| expanded(folder).map(|folder| format!("cd {folder}; "))).transpose()?;
    Ok(Some((*line, format!("({}{exports}exec {}) &", enter.unwrap_or_default(), expanded(command)?))))
}

/// A value in the words of a shell: `%(ENV_NAME)s` is a variable, and what a shell alone reads is quoted. `None` for other
/// expressions.
fn expanded(text: &str, program: &str, here: &str) -> Option<String> {
    let mut shown = String::new();
    let mut quote = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(expression) = rest.strip_prefix("%(") {
            let (name, behind) = expression.split_once(")s")?;
            match (name.strip_prefix("ENV_"), name) {
                (Some(variable), _) => shown.extend(["${", variable, "}"]),
                (None, "program_name") => shown += program,
                (None, "here") => shown += here,
                (None, _) => return None,
            }
            rest = behind;
            continue;
        }
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '\'' | '"') => quote = Some(c),
            Some('\'') => {}
            Some(_) if matches!(c, '$' | '`') => shown.push('\\'),
            None if OF_SHELL.contains(c) => shown.push('\\'),
            Some(_) | None => {}
        }
        // `%%` is a per cent sign.
        shown.push(c);
        rest = rest.strip_prefix("%%").or_else(|| rest.get(c.len_utf8()..))?;
    }
    Some(shown)
}

/// The settings of a list, which commas outside of quotes separate.
fn separated(list: &str) -> Vec<String> {
    let mut quote = None;
    let parts = list.split(|c| {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None => quote = matches!(c, '\'' | '"').then_some(c),
        }
        quote.is_none() && c == ','
    });
    parts.map(str::trim).filter(|part| part.contains('=')).map(ToOwned::to_owned).collect()
}
