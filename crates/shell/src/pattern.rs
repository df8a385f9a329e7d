//! Patterns of `case`, `[[ = ]]`, `${NAME%PATTERN}` and path names (POSIX, "Pattern Matching Notation"; bash's
//! `@(a|b)`).

/// Number of comparisons after which a match is given up.
pub(super) const STEPS: usize = 100_000;

/// Number of `*` and groups in a pattern.
const DEPTH: usize = 100;

/// A pattern: characters, each with whether it is quoted and so stands for itself.
pub(super) type Pattern = [(char, bool)];

/// True if a pattern has an unquoted character that can match others.
pub(super) fn is_magic(pattern: &Pattern) -> bool {
    let has = |wanted: char| pattern.iter().position(|&(c, is_quoted)| !is_quoted && c == wanted);
    // A bracket that nothing closes stands for itself, such as the command `[`.
    let has_set = has('[').is_some_and(|open| pattern.iter().skip(open).any(|&(c, _)| c == ']'));
    has('*').is_some()
        || has('?').is_some()
        || has_set
        || pattern.windows(2).any(|pair| matches!(pair, [('@' | '+' | '!', false), ('(', false)]))
}

/// True if the whole text matches; `None` for a pattern that is not understood, or if `steps` comparisons do not suffice.
pub(super) fn matches(pattern: &Pattern, text: &[char], steps: &mut usize) -> Option<bool> {
    whole(pattern, text, DEPTH, steps)
}

fn whole(mut pattern: &Pattern, mut text: &[char], depth: usize, steps: &mut usize) -> Option<bool> {
    loop {
        *steps = steps.checked_sub(1)?;
        let Some((&(c, is_quoted), rest)) = pattern.split_first() else { return Some(text.is_empty()) };
        if !is_quoted && rest.first() == Some(&('(', false)) && "@?*+!".contains(c) {
            return group(c, rest, text, depth.checked_sub(1)?, steps);
        }
        let set = if c == '[' && !is_quoted { bracket(rest) } else { None };
        let (is_match, after) = match (c, set) {
            ('*', _) if !is_quoted => return star(rest, text, depth.checked_sub(1)?, steps),
            (_, Some((set, after))) => (text.first().map_or(Some(false), |&first| in_set(set, first))?, after),
            ('?', _) if !is_quoted => (!text.is_empty(), rest),
            _ => (text.first() == Some(&c), rest),
        };
        if !is_match {
            return Some(false);
        }
        (pattern, text) = (after, text.get(1..)?);
    }
}

/// What follows `*`.
fn star(rest: &Pattern, text: &[char], depth: usize, steps: &mut usize) -> Option<bool> {
    for taken in 0..=text.len() {
        if whole(rest, text.get(taken..)?, depth, steps)? {
            return Some(true);
        }
    }
    Some(false)
}

/// `@(a|b)` and `?(a|b)`; the others are not understood.
fn group(sign: char, rest: &Pattern, text: &[char], depth: usize, steps: &mut usize) -> Option<bool> {
    let close = rest.iter().position(|&(c, is_quoted)| c == ')' && !is_quoted)?;
    let inner = rest.get(1..close)?;
    let after = rest.get(close + 1..)?;
    if !matches!(sign, '@' | '?') || inner.iter().any(|&(c, is_quoted)| c == '(' && !is_quoted) {
        return None;
    }
    let empty: &Pattern = &[];
    let alternatives = inner.split(|&(c, is_quoted)| c == '|' && !is_quoted);
    for alternative in alternatives.chain((sign == '?').then_some(empty)) {
        *steps = steps.checked_sub(alternative.len() + after.len())?;
        if whole(&[alternative, after].concat(), text, depth, steps)? {
            return Some(true);
        }
    }
    Some(false)
}

/// The content of a bracket expression, and what follows it.
fn bracket(rest: &Pattern) -> Option<(&Pattern, &Pattern)> {
    let negation = usize::from(matches!(rest.first(), Some(('!' | '^', false))));
    let from = negation + 1;
    let close = rest.get(from..)?.iter().position(|&(c, is_quoted)| c == ']' && !is_quoted)? + from;
    Some((rest.get(..close)?, rest.get(close + 1..)?))
}

fn in_set(set: &Pattern, c: char) -> Option<bool> {
    let (is_negated, set) = match set.split_first() {
        Some((('!' | '^', false), rest)) => (true, rest),
        _ => (false, set),
    };
    // Classes such as `[:alpha:]` depend on the locale.
    if set.windows(2).any(|pair| matches!(pair, [('[', false), (':' | '.' | '=', false)])) {
        return None;
    }
    let mut at = 0;
    let mut found = false;
    while let Some(&(first, _)) = set.get(at) {
        if let (Some(('-', false)), Some(&(last, _))) = (set.get(at + 1), set.get(at + 2)) {
            // Ranges of letters depend on the locale.
            if !(first.is_ascii_digit() && last.is_ascii_digit()) {
                return None;
            }
            found |= (first..=last).contains(&c);
            at += 3;
        } else {
            found |= first == c;
            at += 1;
        }
    }
    Some(found != is_negated)
}
