//! Words with arguments: `NCCL_NETDEVS_POLICY` (`src/graph/topo.cc`) and `NCCL_CTA_POLICY` (`src/init.cc`).

use super::Misreading;

/// `AUTO`, `ALL` or `MAX:NUMBER`.
pub(super) fn net_devices(value: &str) -> Option<Misreading> {
    let is_word = |word: &str| value.eq_ignore_ascii_case(word);
    let most = value.split_at_checked(4).filter(|(word, _)| word.eq_ignore_ascii_case("MAX:"));
    let is_most = most.is_some_and(|(_, number)| atoi(number).is_some_and(|number| number > 0));
    let what = || Misreading::ignored("NCCL uses AUTO: it reads AUTO, ALL, or MAX: and a number above 0");
    (!is_word("AUTO") && !is_word("ALL") && !is_most).then(what)
}

/// Words joined by `|`, or the legacy digits 0 to 2.
pub(super) fn cta(value: &str) -> Option<Misreading> {
    const POLICIES: &[&str] = &["DEFAULT", "EFFICIENCY", "ZERO"];
    if let Some(digit) = value.chars().next().filter(char::is_ascii_digit) {
        return match digit {
            '0'..='2' if value.len() == 1 => None,
            '0'..='2' => Some(Misreading::ignored(format!("NCCL reads it as {digit} and ignores the rest"))),
            _ => Some(Misreading::ignored("NCCL uses DEFAULT: the digits are 0, 1 and 2")),
        };
    }
    let unknown = value
        .split('|')
        .filter(|word| !word.is_empty())
        .find(|word| !POLICIES.iter().any(|policy| policy.eq_ignore_ascii_case(word)));
    unknown.map(|word| Misreading::ignored(format!("NCCL ignores {word}: policies are {}", POLICIES.join(", "))))
}

/// The number that C's atoi reads, if the text begins with one.
pub(super) fn atoi(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let sign = usize::from(text.starts_with(['-', '+']));
    let digits = text.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
    text.get(..sign + digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_for_network_devices() {
        for (value, is_read) in [
            ("AUTO", true),
            ("all", true),
            ("MAX:2", true),
            ("max:1", true),
            ("MAX:2x", true),
            ("MAX", false),
            ("MAX:", false),
            ("MAX:0", false),
            ("MAX:-1", false),
            ("2", false),
            ("NONE", false),
            ("MÄX:1", false),
        ] {
            assert_eq!(net_devices(value).is_none(), is_read, "{value}");
        }
    }

    #[test]
    fn policies_for_thread_blocks() {
        for (value, what) in [
            ("DEFAULT", None),
            ("efficiency|ZERO", None),
            ("|ZERO|", None),
            ("1", None),
            ("12", Some("NCCL reads it as 1 and ignores the rest")),
            ("3", Some("NCCL uses DEFAULT: the digits are 0, 1 and 2")),
            ("FAST", Some("NCCL ignores FAST: policies are DEFAULT, EFFICIENCY, ZERO")),
            ("ZERO,DEFAULT", Some("NCCL ignores ZERO,DEFAULT: policies are DEFAULT, EFFICIENCY, ZERO")),
        ] {
            assert_eq!(cta(value).map(|found| found.what).as_deref(), what, "{value}");
        }
    }
}
