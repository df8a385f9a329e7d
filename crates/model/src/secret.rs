//! Secrets in what images, launch files and commands say: recognized by the names of variables and options, and by the
//! forms of well-known tokens. Text from outside passes through here where it enters reports, recordings and messages.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value as Json;

use super::{Value, is_among};

/// What stands in the place of a secret.
pub const SECRET: &str = "<secret>";

/// Words of names whose values are secrets.
const WORDS: &str = "AUTHORIZATION BEARER COOKIE CREDENTIAL CREDS JWT PASSCODE PASSWORDS SECRETS SIGNATURE";

/// Ends of such words, which some names do not separate: `DBPASSWORD`.
const ENDS: &str = "ACCESSKEY APIKEY APIKEYS CREDENTIALS PASSPHRASE PASSWD PASSWORD SECRET SECRETKEY TOKEN";

/// Words of keys that are secrets, in names of any case.
const SECRET_KEYS: &str = "ACCESS ACCOUNT API AUTH DEPLOY ENCRYPTION LICENSE MASTER PRIVATE SECRET SERVICE SHARED \
    SIGNING SSH STORAGE SUBSCRIPTION";

/// Words of keys and tokens that are none: of a data set, of a vocabulary, or public.
const PUBLIC_KINDS: &str = "AUDIO BOS CACHE CLS DATA EOS FIRST FOREIGN GPG GROUP HOST IMAGE JSON LABEL LAST MASK MAX \
    MIN NEW NEXT NUM PAD PARTITION PER PRIMARY PUBLIC QUERY SEP SORT SPECIAL STOP TEXT UNK VALUE VIDEO";

/// First words of names of switches.
const SWITCHES: &str = "ALLOW DISABLE DISABLED ENABLE HAS IS NO SKIP USE WITH WITHOUT";

/// Last words of names whose values describe a secret but are not one.
const ABOUT: &str = "BACKEND BUDGET COUNT DIM DIR ENABLED ENDPOINT FILE FORMAT HEADS HOST ID IDS INDEX LENGTH LIMIT \
    METHOD MODE NAME NORM PATH POLICY PORT PROVIDER REGISTRY SERVER SIZE SOCK STDIN TIMEOUT TTL TYPE URI URL \
    VERSION";

/// Values that no secret has.
const PUBLIC: &[&str] = &["", "true", "false", "yes", "no", "on", "off", "none", "null", "...", "***", SECRET];

/// Declares a regular expression that is compiled on first use.
macro_rules! pattern {
    ($(#[$about:meta])* $name:ident, $text:expr) => {
        $(#[$about])*
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).expect("a valid pattern"));
    };
}

pattern!(
    /// What every text with a secret has. Most texts have none of it, and need no other pattern.
    HINT,
    concat!(
        r#"(?i-u:@|aiza|akia|asia|auth|bearer|cookie|cred|curl|eyj|gh[oprsu]_|hf_|jwt|key|login|mysql|npm_|nvapi-|pass|pat[ "=_:-]"#,
        "|private|pwd|pypi-|secret|sig|sk-|token|xox)"
    )
);

pattern!(
    /// A value at the start of a text: quoted, in escaped quotes, cut off, an object, a substitution, or up to what ends a
    /// word of a shell or a URL. A word may have quoted parts.
    VALUE,
    concat!(
        r#"^(?:\\+"[^"]*"?|\\+'[^']*'?|(?:"(?:[^"\\]|\\.)*"|'[^']*')(?:"[A-Za-z0-9$_][^"]*"|'[A-Za-z0-9$_][^']*')*"#,
        r#"|"[^"]*$|'[^']*$|\{[^{}\r\n]*\}|`[^`\r\n]*`"#,
        r#"|(?:[^ \t\r\n"'&;|\\]|\\ |"[A-Za-z0-9$_][^"\r\n]*"|'[A-Za-z0-9$_][^'\r\n]*')+)"#,
    )
);

pattern!(
    /// Tokens by their form, and private keys.
    TOKEN,
    concat!(
        r"(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{16,}|(?:github_pat_|glpat-|dckr_pat_|nvapi-)[A-Za-z0-9_-]{16,}|sk-(?:[a-z]+-)?[A-Za-z0-9_]{16,}[A-Za-z0-9_-]*",
        r"|(?:hf_|npm_)[A-Za-z0-9]{16,}|pypi-[A-Za-z0-9_-]{30,}|(?:AKIA|ASIA)[A-Z0-9]{12,}|xox[a-z]-[A-Za-z0-9-]{8,}",
        r"|AIza[A-Za-z0-9_-]{30,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)",
        r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
    )
);

pattern!(
    /// The user and the password of a URL.
    USERINFO,
    r#"(?P<before>[A-Za-z][A-Za-z0-9+.-]*://)(?P<value>[^ \t\r\n/?#'"<>]+)@"#
);

pattern!(
    /// A name, and what separates it from its value in a shell, in Python, in JSON and in YAML.
    NAME,
    r#"(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)(?P<between>=|[ \t]+=[ \t]*|\\*["']\][ \t]*=[ \t]*|\\*["']?[ \t]*:[ \t]+|\\*["']:)"#
);

pattern!(
    /// An option whose value is the next word, also of a list in JSON or as Docker prints it.
    OPTION,
    r#"(?:^|[ \t\r\n"'\[,(])--?(?P<name>[A-Za-z][A-Za-z0-9_.-]*)(?P<between>\\*["']?(?:,[ \t]*|(?:[ \t]|\\\r?\n)+))"#
);

pattern!(
    /// The old form of `ENV`, and csh's `setenv`.
    SETENV,
    r"(?-u:\b)(?:ENV|setenv)[ \t]+(?P<name>[A-Za-z0-9_]+)(?P<between>[ \t]+)"
);

pattern!(
    /// A header of HTTP.
    HEADER,
    concat!(
        r"(?P<before>(?-u:\b)(?i-u:(?:(?:proxy-)?authorization|x-[a-z-]*(?:key|token|auth|secret)[a-z-]*|private-token",
        r#"|(?:set-)?cookie)[ \t]*:[ \t]*(?:(?:api-?key|basic|bearer|digest|key|token)[ \t]+)?|bearer[ \t]+))(?P<value>[^ \t\r\n"'\\]+)"#,
    )
);

pattern!(
    /// Options and words of programs whose names do not show that a password follows: `curl -u USER:PASSWORD`,
    /// `login … -p PASSWORD`.
    PROGRAM,
    concat!(
        r#"(?P<before>(?-u:\b)(?:curl[ \t](?:[^;&|\n]*?[ \t])?(?:-u|--user)[ \t=]*["']?[^ \t\r\n:"']+:"#,
        r"|sshpass[ \t]+-p[ \t]*|(?:docker|helm|nerdctl|oc|podman|skopeo)[ \t]+login[ \t](?:[^;&|\n]*?[ \t])?-p[ \t]+",
        r"|mysql(?:admin|dump)?[ \t](?:[^;&|\n]*?[ \t])?-p|wandb[ \t]+login[ \t]+(?:--[a-z]+[ \t]+)?",
        r#"|login[ \t]+[^ \t\r\n]+[ \t]+password[ \t]+))(?P<value>[^ \t\r\n"';&|\\-][^ \t\r\n"';&|\\]*)"#,
    )
);

/// Returns true for the name of a variable or an option whose value is a secret, whatever its prefix.
pub fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
    let is_variable = !name.bytes().any(|byte| byte.is_ascii_lowercase());
    let is_secret = |(index, word): (usize, &&str)| {
        let before = index.checked_sub(1).and_then(|index| words.get(index)).copied();
        let is_last = index + 1 == words.len();
        let is_public = before.is_some_and(|before| is_among(before, PUBLIC_KINDS));
        match *word {
            "AUTH" | "SIG" => is_last,
            "KEY" | "KEYS" => {
                let is_of_secrets = before.is_some_and(|before| is_among(before, SECRET_KEYS));
                is_of_secrets || (is_variable && is_last && before.is_some() && !is_public && *word == "KEY")
            }
            // `N_PASS` and `two-pass` count.
            "PASS" => !before.is_some_and(|before| is_among(before, "MULTI N NUM ONE SINGLE TWO")),
            // A personal access token. NCCL's PAT is an algorithm.
            "PAT" => is_last && before.is_some(),
            "PWD" => is_last && before.is_some_and(|before| before != "OLD"),
            "TOKEN" => !is_public && (is_variable || is_last),
            _ => is_among(word, WORDS) || ENDS.split(' ').any(|end| word.ends_with(end)),
        }
    };
    let (Some(first), Some(last)) = (words.first(), words.last()) else { return false };
    let is_about = words.len() > 1 && (is_among(last, ABOUT) || is_among(first, SWITCHES));
    // `AWS_ACCESS_KEY_ID`
    (!is_about || words.ends_with(&["ACCESS", "KEY", "ID"])) && words.iter().enumerate().any(is_secret)
}

/// The words of a name in upper case, without digits at their ends: those of `HF_TOKEN2`, of `api-key` and of `authToken`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = ' ';
    for character in name.chars() {
        if character.is_ascii_alphanumeric() {
            let begins = !last.is_ascii_alphanumeric() || (last.is_ascii_lowercase() && character.is_ascii_uppercase());
            match words.last_mut().filter(|_| !begins) {
                Some(word) => word.push(character.to_ascii_uppercase()),
                None => words.push(character.to_ascii_uppercase().to_string()),
            }
        }
        last = character;
    }
    for word in &mut words {
        word.truncate(word.trim_end_matches(|digit: char| digit.is_ascii_digit()).len());
    }
    words
}

/// The value of a variable for people: concealed if it is a secret by the variable's name, or has one in it.
pub fn shown_value<'v>(name: &str, value: &'v str) -> Cow<'v, str> {
    if is_secret_name(name) && !is_public(value) { SECRET.into() } else { conceal(value) }
}

/// A text with `<secret>` in the place of each secret.
pub fn conceal(text: &str) -> Cow<'_, str> {
    if !HINT.is_match(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = Cow::Borrowed(text);
    let steps: [fn(&str) -> Option<String>; 7] = [
        |text: &str| changed(&TOKEN, text, |found, _| token(found)),
        |text: &str| changed(&USERINFO, text, userinfo),
        |text: &str| changed(&HEADER, text, |found, _| behind(found)),
        |text: &str| changed(&PROGRAM, text, |found, _| behind(found)),
        |text: &str| named(&OPTION, text),
        |text: &str| named(&SETENV, text),
        |text: &str| named(&NAME, text),
    ];
    for step in steps {
        if let Some(changed) = step(&shown) {
            shown = Cow::Owned(changed);
        }
    }
    shown
}

/// The words of a command: the word behind an option that takes a secret is one.
pub fn conceal_words(words: &[String]) -> Vec<String> {
    let mut is_value = false;
    let mut shown = Vec::with_capacity(words.len());
    for word in words {
        let is_secret = is_value && !word.starts_with('-') && !is_public(word);
        is_value = word.strip_prefix('-').is_some_and(is_secret_name) && !word.contains('=');
        shown.push(if is_secret { SECRET.to_owned() } else { conceal_word(word) });
    }
    // Some programs take a password without an option for it: the words before it identify it.
    let line = if shown.len() > MOST_TELLING { String::new() } else { shown.join("\t") };
    if let Some(line) = changed(&PROGRAM, &line, |found, _| behind(found)) {
        let words: Vec<_> = line.split('\t').map(str::to_owned).collect();
        return if words.len() == shown.len() { words } else { vec![line.replace('\t', " ")] };
    }
    shown
}

/// Most words of a command of which one is looked for in the context of the others.
const MOST_TELLING: usize = 1_000;

/// One word of a command, whose value reaches to its end, blanks included.
fn conceal_word(word: &str) -> String {
    let named = word.split_once('=').filter(|(name, value)| {
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
        is_name && is_secret_name(name) && !is_public(value)
    });
    named.map_or_else(|| conceal(word).into_owned(), |(name, _)| format!("{name}={SECRET}"))
}

/// A line of JSON, or another line, with `<secret>` in the place of each secret. What is JSON stays JSON.
pub fn conceal_line(line: &str) -> Cow<'_, str> {
    if !HINT.is_match(line) {
        return Cow::Borrowed(line);
    }
    let Ok(value) = serde_json::from_str::<Json>(line) else { return conceal(line) };
    let mut shown = value.clone();
    conceal_in(&mut shown, None);
    if shown == value { Cow::Borrowed(line) } else { Cow::Owned(shown.to_string()) }
}

/// Conceals secrets in a value, which may have a name.
fn conceal_in(value: &mut Json, name: Option<&str>) {
    match value {
        Json::String(text) => *text = name.map_or_else(|| conceal(text), |name| shown_value(name, text)).into_owned(),
        Json::Array(values) => {
            let words: Option<Vec<String>> = values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
            match words {
                Some(words) => *values = conceal_words(&words).into_iter().map(Json::from).collect(),
                None => values.iter_mut().for_each(|value| conceal_in(value, None)),
            }
        }
        Json::Object(values) => {
            let variable = values.get("name").and_then(Json::as_str).map(str::to_owned);
            for (key, value) in values.iter_mut() {
                conceal_in(value, variable.as_deref().filter(|_| key == "value").or(Some(key)));
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// The value of a fact; `None` if it has no secret.
pub fn concealed(value: &Value) -> Option<Value> {
    if !may_hold(value) {
        return None;
    }
    let shown = shown_fact(value, None);
    (shown != *value).then_some(shown)
}

fn shown_fact(value: &Value, name: Option<&str>) -> Value {
    match value {
        Value::Text(text) => {
            Value::Text(name.map_or_else(|| conceal(text), |name| shown_value(name, text)).into_owned())
        }
        Value::List(values) => match values.iter().map(as_text).collect::<Option<Vec<_>>>() {
            Some(words) => conceal_words(&words).into(),
            None => Value::List(values.iter().map(|value| shown_fact(value, None)).collect()),
        },
        Value::Map(values) => {
            // An entry is a variable, or the record of one.
            let variable = values.get("name").and_then(as_text);
            let name = |key| variable.as_deref().filter(|_| key == "value").unwrap_or(key);
            let shown = values.iter().map(|(key, value)| (key.clone(), shown_fact(value, Some(name(key)))));
            Value::Map(shown.collect())
        }
        Value::Bool(_) | Value::Int(_) | Value::Version(_) => value.clone(),
    }
}

fn may_hold(value: &Value) -> bool {
    match value {
        Value::Text(text) => HINT.is_match(text),
        Value::List(values) => values.iter().any(may_hold),
        Value::Map(values) => values.iter().any(|(key, value)| HINT.is_match(key) || may_hold(value)),
        Value::Bool(_) | Value::Int(_) | Value::Version(_) => false,
    }
}

fn as_text(value: &Value) -> Option<String> {
    if let Value::Text(text) = value { Some(text.clone()) } else { None }
}

/// Replaces matches for which `with` returns a text; `None` if nothing changes. It is also given what follows.
fn changed(pattern: &Regex, text: &str, with: impl Fn(&Captures<'_>, &str) -> Option<String>) -> Option<String> {
    let mut shown = String::new();
    let mut end = 0;
    for found in pattern.captures_iter(text) {
        let whole = found.get_match();
        let Some(replaced) = with(&found, text.get(whole.end()..)?) else { continue };
        shown.push_str(text.get(end..whole.start())?);
        shown.push_str(&replaced);
        end = whole.end();
    }
    (end > 0).then(|| shown + text.get(end..).unwrap_or_default())
}

/// Replaces the values behind names of secrets; `None` if nothing changes. Other values may have names in them.
fn named(pattern: &Regex, text: &str) -> Option<String> {
    let mut shown = String::new();
    let mut end = 0;
    let mut at = 0;
    while let Some(found) = pattern.captures_at(text, at) {
        let start = found.get_match().end();
        at = found.name("name").map_or(start, |name| name.end());
        if !is_secret_name(&found["name"]) {
            continue;
        }
        let Some(value) = VALUE.find(text.get(start..)?) else { continue };
        let whole = value.as_str();
        let inner = whole.trim_start_matches('\\');
        let inner = inner.strip_prefix(['"', '\'']).unwrap_or(inner);
        let start = start + whole.len() - inner.len();
        let inner = if inner.len() == whole.len() { inner } else { inner.trim_end_matches(['"', '\'']) };
        let inner = if whole.starts_with('\\') { inner.trim_end_matches('\\') } else { inner };
        if is_public(inner) || !is_value(&found["between"], whole) {
            continue;
        }
        shown.push_str(text.get(end..start)?);
        shown.push_str(SECRET);
        end = start + inner.len();
        at = end;
    }
    (end > 0).then(|| shown + text.get(end..).unwrap_or_default())
}

/// Conceals what follows a header or an option.
fn behind(found: &Captures<'_>) -> Option<String> {
    let before = &found["before"];
    let value = &found["value"];
    // A sentence may have the word.
    let is_word = before.trim_end().eq_ignore_ascii_case("bearer") && value.len() < 16;
    (!is_word && !is_public(value)).then(|| format!("{before}{SECRET}"))
}

/// Returns true if a text behind a name is the name's value. Sentences have colons and dashes too, so without quotes a
/// value behind a colon needs letters and digits.
fn is_value(between: &str, value: &str) -> bool {
    let is_quoted = value.starts_with(['"', '\'', '\\']);
    if between == "=" {
        return !value.starts_with(['=', '>', '~']);
    }
    if between.contains('=') {
        return is_quoted;
    }
    if between.contains(':') {
        let is_random = value.len() >= 8
            && value.bytes().any(|byte| byte.is_ascii_digit())
            && value.bytes().any(|byte| byte.is_ascii_alphabetic());
        return is_quoted || (is_random && !value.starts_with(['/', '.']));
    }
    !value.starts_with('-')
}

/// Returns true for a value that is not a secret: a word such as `true`, a short number, a reference to a variable.
fn is_public(value: &str) -> bool {
    let is_reference = |value: &str| {
        let name = value.strip_prefix('$').unwrap_or_default();
        let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
        let name = name.split_once(":?").map_or(name, |(name, _)| name);
        let name = name.strip_suffix(":-").or(name.strip_suffix('-')).unwrap_or(name);
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let is_number = value.len() <= 5 && value.bytes().all(|byte| byte.is_ascii_digit());
    // `1.7.4-6`, of a package whose name has such a word.
    let is_version = value.split_once('.').is_some_and(|(major, rest)| {
        !major.is_empty()
            && major.bytes().all(|byte| byte.is_ascii_digit())
            && rest.starts_with(|digit: char| digit.is_ascii_digit())
    });
    PUBLIC.iter().any(|word| value.eq_ignore_ascii_case(word))
        || is_number
        || is_version
        // A secret of a build, by its name.
        || value.starts_with("id=")
        || is_reference(value)
        || value.starts_with("$(")
        || value.starts_with("${{")
}

fn token(found: &Captures<'_>) -> Option<String> {
    let text = found.get_match().as_str();
    // Names of packages begin so too: sk-learn-contrib_something.
    let is_name = text.starts_with("sk-") && !text.bytes().any(|byte| byte.is_ascii_digit());
    (!is_name).then(|| SECRET.to_owned())
}

fn userinfo(found: &Captures<'_>, rest: &str) -> Option<String> {
    let scheme = &found["before"];
    let is_of_web = scheme.ends_with("http://") || scheme.ends_with("https://");
    // The digest of an image is not a host, and an ssh URL has a user without a password.
    let is_digest = rest.starts_with("sha256:") || rest.starts_with("sha512:");
    let value = &found["value"];
    let is_secret =
        !is_digest && (is_of_web || value.contains(':')) && value != "git" && !value.split(':').all(is_public);
    is_secret.then(|| format!("{scheme}{SECRET}@"))
}

#[cfg(test)]
mod tests;
