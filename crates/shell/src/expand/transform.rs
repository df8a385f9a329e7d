//! What is made of a parameter's value: its ends without a pattern, a part of it, other letters (bash, "Shell Parameter
//! Expansion").

use super::super::evaluate::{Evaluator, Surroundings};
use super::super::fault::ScriptCause;
use super::super::gap::ShellGap;
use super::super::kind::ShellKind;
use super::super::pattern::{Pattern, matches};
use super::super::state::{Field, ShellState};
use super::super::word::{Parameter, ParameterForm, Word};
use super::Expanded;

impl<S: Surroundings> Evaluator<'_, S> {
    /// The value that a form makes of another one.
    pub(super) fn transformed(
        &mut self,
        state: &mut ShellState,
        parameter: &Parameter,
        value: Expanded,
        line: usize,
    ) -> Result<Expanded, ShellGap> {
        let unknown = self.gap(line, "only a shell can determine the value of a word");
        let is_known = match parameter.form {
            ParameterForm::Removal { .. } => true,
            ParameterForm::Substring { .. } | ParameterForm::Replacement { .. } => state.kind.is_like_bash(),
            _ => state.kind.is_bash(),
        };
        if !is_known {
            if state.kind == ShellKind::Dash {
                self.refused.get_or_insert(self.fault(line, "bad substitution", ScriptCause::OfBash));
            }
            return Err(unknown);
        }
        if let ParameterForm::Substring { offset, length } = &parameter.form {
            let length = length.as_ref().map(|length| self.arithmetic(state, length, line)).transpose()?;
            let offset = self.arithmetic(state, offset, line)?;
            return part(state, parameter, value, offset, length).unwrap_or(Err(unknown));
        }
        let text = match value {
            Expanded::Unset => String::new(),
            Expanded::Text(text) => text,
            Expanded::Many(_) => return Err(unknown),
        };
        let text = match &parameter.form {
            ParameterForm::Removal { is_suffix, is_longest, pattern } => {
                let pattern = self.pattern(state, pattern)?;
                self.matching(|steps| removed(&text, &pattern, *is_suffix, *is_longest, steps))
            }
            ParameterForm::Replacement { is_global, pattern, word } => {
                self.replaced(state, &text, *is_global, pattern, word)?
            }
            ParameterForm::Letters { is_upper, is_global } => letters(&text, *is_upper, *is_global),
            ParameterForm::Indirect => {
                let name = Parameter { name: text, index: None, form: ParameterForm::Plain };
                return self.expanded(state, &name, line);
            }
            _ => None,
        };
        text.map(Expanded::Text).ok_or(unknown)
    }

    fn replaced(
        &mut self,
        state: &mut ShellState,
        text: &str,
        is_global: bool,
        pattern: &Word,
        word: &Word,
    ) -> Result<Option<String>, ShellGap> {
        let pattern = self.pattern(state, pattern)?;
        let word = self.value(state, word)?;
        // A sign in front binds the pattern to an end, and `&` in the word may stand for the match.
        if matches!(pattern.first(), None | Some(('#' | '%', false))) || word.contains('&') {
            return Ok(None);
        }
        Ok(self.matching(|steps| replaced(text, &pattern, &word, is_global, steps)))
    }
}

/// A part of a text, of the arguments or of an array; `None` if it is not understood.
fn part(
    state: &ShellState,
    parameter: &Parameter,
    value: Expanded,
    offset: i64,
    length: Option<i64>,
) -> Option<Result<Expanded, ShellGap>> {
    let is_list = matches!(parameter.name.as_str(), "@" | "*") || parameter.index.as_deref() == Some("@");
    match value {
        Expanded::Unset => Some(Ok(Expanded::Text(String::new()))),
        Expanded::Text(text) => {
            let characters: Vec<char> = text.chars().collect();
            let part = range(characters.len(), offset, length).map(|range| characters.get(range).unwrap_or_default());
            part.map(|part| Ok(Expanded::Text(part.iter().collect())))
        }
        Expanded::Many(fields) if is_list => {
            let is_arguments = parameter.index.is_none();
            let own: &[Field] = &[Ok(state.name.clone())];
            let all = if is_arguments { [own, &fields].concat() } else { fields };
            // A list has no length from its end.
            if length.is_some_and(|length| length < 0) {
                return None;
            }
            let kept = all.get(range(all.len(), offset, length)?)?.to_vec();
            if parameter.name == "*" {
                let words: Result<Vec<String>, _> = kept.into_iter().collect();
                return Some(words.map(|words| Expanded::Text(words.join(" "))).map_err(|unknown| unknown.gap));
            }
            Some(Ok(Expanded::Many(kept)))
        }
        // The known beginning of a word.
        Expanded::Many(fields) => match fields.as_slice() {
            [Err(unknown)] => {
                let end = usize::try_from(offset).ok()?.checked_add(usize::try_from(length?).ok()?)?;
                let start = usize::try_from(offset).ok()?;
                let characters: Vec<char> = unknown.prefix.chars().collect();
                let known = characters.get(start..end).map(|part| Expanded::Text(part.iter().collect()));
                Some(known.ok_or_else(|| unknown.gap.clone()))
            }
            _ => None,
        },
    }
}

/// The positions from an offset on, both of which may count from the end; `None` if the shell refuses them.
fn range(count: usize, offset: i64, length: Option<i64>) -> Option<std::ops::Range<usize>> {
    let count = i64::try_from(count).ok()?;
    let start = if offset < 0 { count + offset } else { offset };
    if start < 0 || start > count {
        return Some(0..0);
    }
    let end = match length {
        None => count,
        Some(length) if length < 0 => count + length,
        Some(length) => count.min(start.checked_add(length)?),
    };
    (end >= start).then_some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}

/// A text with other letters.
fn letters(text: &str, is_upper: bool, is_global: bool) -> Option<String> {
    // Others depend on the locale.
    if !text.is_ascii() {
        return None;
    }
    let count = if is_global { text.len() } else { text.len().min(1) };
    let (changed, rest) = text.split_at(count);
    Some(if is_upper { changed.to_ascii_uppercase() } else { changed.to_ascii_lowercase() } + rest)
}

/// A text whose first or all matches of a pattern, the longest at each place, are replaced; `None` if that is not
/// understood.
fn replaced(text: &str, pattern: &Pattern, word: &str, is_global: bool, steps: &mut usize) -> Option<String> {
    let text: Vec<char> = text.chars().collect();
    let mut made = String::new();
    let mut rest = text.as_slice();
    while let Some((first, after)) = rest.split_first() {
        let mut found = None;
        for end in (1..=rest.len()).rev() {
            if matches(pattern, rest.get(..end)?, steps)? {
                found = Some(end);
                break;
            }
        }
        if let Some(end) = found {
            *steps = steps.checked_sub(word.len())?;
            made.push_str(word);
            rest = rest.get(end..)?;
            if !is_global {
                break;
            }
        } else {
            made.push(*first);
            rest = after;
        }
    }
    made.extend(rest);
    Some(made)
}

/// A text without the shortest or longest end that matches a pattern; `None` if that is not understood.
fn removed(text: &str, pattern: &Pattern, is_suffix: bool, is_longest: bool, steps: &mut usize) -> Option<String> {
    let text: Vec<char> = text.chars().collect();
    let mut cuts: Vec<usize> = (0..=text.len()).collect();
    if is_suffix != is_longest {
        cuts.reverse();
    }
    for cut in cuts {
        let (before, after) = text.split_at_checked(cut)?;
        let (end, rest) = if is_suffix { (after, before) } else { (before, after) };
        if matches(pattern, end, steps)? {
            return Some(rest.iter().collect());
        }
    }
    Some(text.iter().collect())
}
