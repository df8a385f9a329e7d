//! Expands words (POSIX, "Word Expansions"): parameters, command substitutions, field splitting and path names.

use crate::model::Gap;

use super::evaluate::{Evaluator, Surroundings};
use super::pattern::{is_magic, matches};
use super::state::{Field, ShellKind, ShellState, ShellValue, UnknownField};
use super::word::{Parameter, ParameterForm, Piece, Word};

/// Number of path names of a pattern from which on they are unknown.
const PATHS: usize = 1000;

/// Characters, each with whether it is quoted.
type Quoted = Vec<(char, bool)>;

/// Words in the making.
struct WordDraft {
    done: Vec<Result<Quoted, UnknownField>>,
    current: Option<Quoted>,
    /// Why the rest of the current word is unknown.
    gap: Option<Gap>,
    /// True if unquoted values are split into words.
    splits: bool,
}

/// The value of a parameter.
enum Expanded {
    Unset,
    Text(String),
    /// `$@` and `${NAME[@]}`.
    Many(Vec<Field>),
}

impl WordDraft {
    fn new(splits: bool) -> Self {
        Self { done: Vec::new(), current: None, gap: None, splits }
    }

    fn push(&mut self, text: &str, is_quoted: bool) {
        if self.gap.is_none() {
            self.current.get_or_insert_default().extend(text.chars().map(|c| (c, is_quoted)));
        }
    }

    /// Appends the value of an unquoted expansion.
    fn push_split(&mut self, text: &str) {
        for c in text.chars() {
            if self.gap.is_none() && self.splits && matches!(c, ' ' | '\t' | '\n') {
                self.end();
            } else {
                self.push(c.encode_utf8(&mut [0; 4]), false);
            }
        }
    }

    fn fail(&mut self, gap: Gap) {
        self.current.get_or_insert_default();
        self.gap.get_or_insert(gap);
    }

    /// Ends the current word.
    fn end(&mut self) {
        let current = self.current.take();
        match self.gap.take() {
            Some(gap) => self.done.push(Err(UnknownField { prefix: unquoted(&current.unwrap_or_default()), gap })),
            None => self.done.extend(current.map(Ok)),
        }
    }
}

fn unquoted(text: &[(char, bool)]) -> String {
    text.iter().map(|(c, _)| *c).collect()
}

impl<S: Surroundings> Evaluator<'_, S> {
    /// The words of a command.
    pub(super) fn fields(&mut self, state: &mut ShellState, words: &[Word]) -> Vec<Field> {
        let mut fields = Vec::new();
        for word in words {
            let mut draft = WordDraft::new(true);
            if state.kind == ShellKind::Bash && has_braces(word) {
                draft.push(&known_prefix(word), false);
                draft.fail(self.gap(word.line, "only a shell can determine what a word with braces becomes"));
            } else {
                self.pieces(state, word, &mut draft);
            }
            draft.end();
            for field in draft.done {
                match field {
                    Ok(text) if is_magic(&text) && !state.options.expands_no_paths => {
                        fields.extend(self.path_names(state, &text, word.line));
                    }
                    Ok(text) => fields.push(Ok(unquoted(&text))),
                    Err(unknown) => fields.push(Err(unknown)),
                }
            }
        }
        fields
    }

    /// The value of a word that is not split, such as that of an assignment.
    pub(super) fn value(&mut self, state: &mut ShellState, word: &Word) -> Result<String, Gap> {
        Ok(unquoted(&self.pattern(state, word)?))
    }

    /// The word as a pattern.
    pub(super) fn pattern(&mut self, state: &mut ShellState, word: &Word) -> Result<Quoted, Gap> {
        let mut draft = WordDraft::new(false);
        self.pieces(state, word, &mut draft);
        draft.end();
        let mut all = Quoted::new();
        for field in draft.done {
            all.extend(field.map_err(|unknown| unknown.gap)?);
        }
        Ok(all)
    }

    /// The elements of an array.
    pub(super) fn array(&mut self, state: &mut ShellState, words: &[Word]) -> Result<Vec<String>, Gap> {
        self.fields(state, words).into_iter().map(|field| field.map_err(|unknown| unknown.gap)).collect()
    }

    fn pieces(&mut self, state: &mut ShellState, word: &Word, draft: &mut WordDraft) {
        for (index, piece) in word.pieces.iter().enumerate() {
            match piece {
                Piece::Text { text, is_quoted: false } if index == 0 && text.starts_with('~') => {
                    self.tilde(state, text, word.line, draft);
                }
                Piece::Text { text, is_quoted } => draft.push(text, *is_quoted),
                Piece::Parameter { parameter, is_quoted } => {
                    self.parameter(state, parameter, *is_quoted, word.line, draft);
                }
                Piece::Command { script, line, is_quoted } => match self.substitute(state, script, *line) {
                    Ok(text) => self.splice(state, &text, *is_quoted, draft),
                    Err(gap) => draft.fail(gap),
                },
                Piece::Array(_) | Piece::Computed => {
                    draft.fail(self.gap(word.line, "only a shell can determine the value of a word"));
                }
            }
        }
    }

    fn tilde(&self, state: &ShellState, text: &str, line: usize, draft: &mut WordDraft) {
        let (name, rest) = text.split_at(text.find('/').unwrap_or(text.len()));
        match state.text("HOME") {
            Ok(home) if name == "~" && !home.is_empty() => {
                draft.push(&home, true);
                draft.push(rest, false);
            }
            Err(gap) if name == "~" => draft.fail(gap),
            _ => draft.fail(self.gap(line, &format!("the home directory {name} is not looked up"))),
        }
    }

    /// Appends a value as an unquoted or a quoted expansion does.
    fn splice(&self, state: &ShellState, text: &str, is_quoted: bool, draft: &mut WordDraft) {
        if is_quoted {
            return draft.push(text, true);
        }
        match state.variable("IFS") {
            Ok(None) => draft.push_split(text),
            Ok(Some(ShellValue::Text(separators))) if separators == " \t\n" => draft.push_split(text),
            Ok(Some(ShellValue::Text(separators))) if separators.is_empty() => {
                if !text.is_empty() {
                    draft.push(text, false);
                }
            }
            Ok(Some(_)) if draft.splits => {
                draft.fail(self.gap(0, "a word is split by a separator of the script's own"));
            }
            Ok(Some(_)) => draft.push(text, false),
            Err(gap) => draft.fail(gap.clone()),
        }
    }

    fn parameter(
        &mut self,
        state: &mut ShellState,
        parameter: &Parameter,
        is_quoted: bool,
        line: usize,
        draft: &mut WordDraft,
    ) {
        let value = self.expanded(state, parameter, line);
        let is_list = matches!(value, Ok(Expanded::Many(_)));
        match (&parameter.form, value) {
            (ParameterForm::Plain, Ok(value)) => {
                if state.options.refuses_unset && matches!(value, Expanded::Unset) {
                    return draft
                        .fail(self.gap(line, &format!("{} is not set, which 'set -u' refuses", parameter.name)));
                }
                self.insert(state, value, is_quoted, draft);
            }
            (ParameterForm::Length, Ok(value)) => match value {
                Expanded::Unset => draft.push("0", is_quoted),
                Expanded::Text(text) => draft.push(&text.chars().count().to_string(), is_quoted),
                Expanded::Many(fields) => draft.push(&fields.len().to_string(), is_quoted),
            },
            (ParameterForm::Conditional { sign, has_colon, word }, Ok(value)) => {
                let is_there = match &value {
                    Expanded::Unset => false,
                    Expanded::Text(text) => !(*has_colon && text.is_empty()),
                    Expanded::Many(fields) => match fields.as_slice() {
                        [] => false,
                        [Ok(only)] => !(*has_colon && only.is_empty()),
                        [Err(unknown)] if *has_colon => return draft.fail(unknown.gap.clone()),
                        _ => true,
                    },
                };
                match (sign, is_there) {
                    ('+', true) | ('-', false) => self.replacement(state, word, is_quoted, draft),
                    ('+', false) => self.insert(state, Expanded::Text(String::new()), is_quoted, draft),
                    (_, true) => self.insert(state, value, is_quoted, draft),
                    ('=', false) => match self.value(state, word) {
                        Ok(text) => {
                            let at = self.place(line);
                            state.assign(&parameter.name, Ok(ShellValue::Text(text.clone())), at);
                            self.splice(state, &text, is_quoted, draft);
                        }
                        Err(gap) => draft.fail(gap),
                    },
                    _ => draft.fail(self.gap(line, &format!("{} is not set, which ends the script", parameter.name))),
                }
            }
            (ParameterForm::Removal { .. }, Ok(_)) if is_list => {
                draft.fail(self.gap(line, "only a shell can determine the value of a word"));
            }
            (ParameterForm::Removal { is_suffix, is_longest, pattern }, Ok(value)) => {
                let text = if let Expanded::Text(text) = value { text } else { String::new() };
                let pattern = self.pattern(state, pattern);
                match pattern.map(|pattern| removed(&text, &pattern, *is_suffix, *is_longest)) {
                    Ok(Some(text)) => self.splice(state, &text, is_quoted, draft),
                    Ok(None) => draft.fail(self.gap(line, "only a shell can determine the value of a word")),
                    Err(gap) => draft.fail(gap),
                }
            }
            (_, Err(gap)) => draft.fail(gap),
        }
    }

    /// Expands the word of `${NAME:-WORD}`.
    fn replacement(&mut self, state: &mut ShellState, word: &Word, is_quoted: bool, draft: &mut WordDraft) {
        if is_quoted {
            draft.push("", true);
        }
        for piece in &word.pieces {
            // Text of an unquoted expansion is split.
            if let Piece::Text { text, is_quoted: false } = piece {
                self.splice(state, text, false, draft);
            } else {
                self.pieces(state, &Word { pieces: vec![piece.clone()], line: word.line }, draft);
            }
        }
    }

    fn insert(&self, state: &ShellState, value: Expanded, is_quoted: bool, draft: &mut WordDraft) {
        match value {
            Expanded::Unset => self.splice(state, "", is_quoted, draft),
            Expanded::Text(text) => self.splice(state, &text, is_quoted, draft),
            Expanded::Many(fields) => {
                if fields.is_empty() && draft.current.as_ref().is_some_and(Vec::is_empty) && draft.gap.is_none() {
                    draft.current = None;
                }
                for (index, field) in fields.into_iter().enumerate() {
                    if index > 0 && draft.splits {
                        draft.end();
                    } else if index > 0 {
                        draft.push(" ", true);
                    }
                    match field {
                        Ok(text) => self.splice(state, &text, is_quoted, draft),
                        Err(unknown) => {
                            draft.push(&unknown.prefix, is_quoted);
                            draft.fail(unknown.gap);
                        }
                    }
                }
            }
        }
    }

    /// The value of a parameter, whatever its form makes of it.
    fn expanded(&self, state: &ShellState, parameter: &Parameter, line: usize) -> Result<Expanded, Gap> {
        let Parameter { name, index, .. } = parameter;
        let computed = || Err(self.gap(line, &format!("only a shell can determine the value of ${name}")));
        match name.as_str() {
            "@" => return Ok(Expanded::Many(state.arguments.clone()?)),
            // The number of arguments does not depend on their values.
            "*" => {
                let arguments = state.arguments.clone()?;
                if matches!(parameter.form, ParameterForm::Length) {
                    return Ok(Expanded::Many(arguments));
                }
                let words: Result<Vec<_>, _> = arguments.into_iter().collect();
                // The separator is the first character of IFS.
                let is_default = matches!(state.variable("IFS"), Ok(None));
                let words = words.map_err(|unknown| unknown.gap)?;
                return if is_default { Ok(Expanded::Text(words.join(" "))) } else { computed() };
            }
            "#" => return Ok(Expanded::Text(state.arguments.as_ref().map_err(Clone::clone)?.len().to_string())),
            "0" => return Ok(Expanded::Text(state.name.clone())),
            "?" => return state.status.map_or_else(computed, |status| Ok(Expanded::Text(status.to_string()))),
            "!" | "$" | "-" => return computed(),
            _ => {}
        }
        if let Ok(number) = name.parse::<usize>() {
            let arguments = state.arguments.as_ref().map_err(Clone::clone)?;
            let argument = number.checked_sub(1).and_then(|at| arguments.get(at));
            return match argument {
                None => Ok(Expanded::Unset),
                Some(Ok(text)) => Ok(Expanded::Text(text.clone())),
                // The known beginning of an unknown word is kept.
                Some(Err(unknown)) => Ok(Expanded::Many(vec![Err(unknown.clone())])),
            };
        }
        if name == "BASH_SOURCE" && state.kind == ShellKind::Bash {
            let is_first = matches!(index.as_deref(), None | Some("0"));
            return if is_first { Ok(Expanded::Text(self.source_path().to_owned())) } else { computed() };
        }
        if name == "PWD" {
            return state.directory.clone().map(Expanded::Text);
        }
        if is_of_shell(name, state.kind) && !state.variables.contains_key(name) {
            return computed();
        }
        let value = state.variable(name).map_err(Clone::clone)?;
        match (value, index.as_deref()) {
            (None, _) => Ok(Expanded::Unset),
            (Some(ShellValue::List(list)), Some("@")) => Ok(Expanded::Many(list.iter().cloned().map(Ok).collect())),
            (Some(ShellValue::List(list)), None) => Ok(list.first().cloned().map_or(Expanded::Unset, Expanded::Text)),
            (Some(ShellValue::List(list)), Some(index)) => match index.parse::<usize>() {
                Ok(index) => Ok(list.get(index).cloned().map_or(Expanded::Unset, Expanded::Text)),
                Err(_) => computed(),
            },
            (Some(ShellValue::Text(text)), None | Some("0" | "@" | "*")) => Ok(Expanded::Text(text.clone())),
            (Some(ShellValue::Text(_)), Some(_)) => computed(),
        }
    }

    /// The path names that match a pattern, or the pattern itself if there are none.
    fn path_names(&mut self, state: &ShellState, pattern: &[(char, bool)], line: usize) -> Vec<Field> {
        let literal = unquoted(pattern);
        let unknown = |gap: Gap| {
            let known: Quoted =
                pattern.iter().take_while(|(c, is_quoted)| *is_quoted || !"*?[@+!".contains(*c)).copied().collect();
            vec![Err(UnknownField { prefix: unquoted(&known), gap })]
        };
        let mut found: Vec<String> = vec![String::new()];
        for (index, part) in pattern.split(|&(c, _)| c == '/').enumerate() {
            let slash = if index == 0 { "" } else { "/" };
            if !is_magic(part) {
                for path in &mut found {
                    *path = format!("{path}{slash}{}", unquoted(part));
                }
                continue;
            }
            let mut next = Vec::new();
            for path in &found {
                let folder = match Self::absolute(state, &format!("{path}{slash}")) {
                    Ok(folder) => folder,
                    Err(gap) => return unknown(gap),
                };
                let names = match self.names(state, &folder, line) {
                    Ok(names) => names,
                    Err(gap) => return unknown(gap),
                };
                for name in names {
                    let is_hidden = name.starts_with('.') && part.first() != Some(&('.', false));
                    match matches(part, &name) {
                        Some(true) if !is_hidden => next.push(format!("{path}{slash}{name}")),
                        Some(_) => {}
                        None => {
                            return unknown(self.gap(line, "only a shell can determine which names match a pattern"));
                        }
                    }
                }
            }
            found = next;
        }
        let mut kept = Vec::new();
        for path in found {
            match Self::absolute(state, &path).and_then(|absolute| self.kind(state, &absolute, line)) {
                Ok(Some(_)) => kept.push(Ok(path)),
                Ok(None) => {}
                Err(gap) => return unknown(gap),
            }
        }
        if kept.len() > PATHS {
            return unknown(self.gap(line, "a pattern matches too many path names"));
        }
        if kept.is_empty() && !state.options.drops_unmatched {
            kept.push(Ok(literal));
        }
        kept
    }
}

/// True for a variable that the shell itself sets.
fn is_of_shell(name: &str, kind: ShellKind) -> bool {
    const BOTH: &[&str] = &["PPID", "OPTIND", "OPTARG", "PS2", "PS4", "LINENO", "OLDPWD", "_"];
    const BASH: &[&str] = &[
        "UID",
        "EUID",
        "GROUPS",
        "RANDOM",
        "SRANDOM",
        "SECONDS",
        "HOSTNAME",
        "HOSTTYPE",
        "MACHTYPE",
        "OSTYPE",
        "SHELLOPTS",
        "SHLVL",
        "SHELL",
        "DIRSTACK",
        "PIPESTATUS",
        "FUNCNAME",
        "EPOCHSECONDS",
        "EPOCHREALTIME",
        "TERM",
        "COMP_WORDBREAKS",
    ];
    BOTH.contains(&name)
        || (kind == ShellKind::Bash && (BASH.contains(&name) || (name.starts_with("BASH") && name != "BASH_ENV")))
}

/// A text without the shortest or longest end that matches a pattern; `None` if that is not understood.
fn removed(text: &str, pattern: &[(char, bool)], is_suffix: bool, is_longest: bool) -> Option<String> {
    let mut cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    if is_suffix != is_longest {
        cuts.reverse();
    }
    for cut in cuts {
        let (before, after) = text.split_at(cut);
        let (end, rest) = if is_suffix { (after, before) } else { (before, after) };
        if matches(pattern, end)? {
            return Some(rest.to_owned());
        }
    }
    Some(text.to_owned())
}

/// True if bash may expand braces in a word.
fn has_braces(word: &Word) -> bool {
    let open: String = word
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text { text, is_quoted: false } => text.as_str(),
            _ => "",
        })
        .collect();
    open.find('{').is_some_and(|at| {
        let rest = open.get(at..).unwrap_or_default();
        rest.contains('}') && (rest.contains(',') || rest.contains(".."))
    })
}

/// The text of a word before its first brace or expansion.
fn known_prefix(word: &Word) -> String {
    let mut prefix = String::new();
    for piece in &word.pieces {
        match piece {
            Piece::Text { text, is_quoted } => {
                let known = if *is_quoted { text } else { text.split('{').next().unwrap_or_default() };
                prefix.push_str(known);
                if known.len() != text.len() {
                    break;
                }
            }
            _ => break,
        }
    }
    prefix
}
