//! Descriptions of variables, for people.

use super::vocabulary::{CostScope, Costs, Reads, VariableRow, VariableUse, table};

/// A variable, as the table of variables describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableDescription {
    /// The name.
    pub name: &'static str,
    /// The library that reads it.
    pub reader: &'static str,
    /// Ranges of releases that read it, such as `2.10.3 to 2.19.4`; empty where the table has none.
    pub releases: Vec<String>,
    /// Its effect, in one sentence.
    pub effect: Option<&'static str>,
    /// The format of its value; `None` for a name that no release reads.
    pub value: Option<String>,
    /// The default value.
    pub default: Option<&'static str>,
    /// The cost of setting it.
    pub cost: Option<String>,
    /// The name that replaced it, or that was meant.
    pub instead: Option<&'static str>,
}

/// Describes a variable. `None` if the table has no such name.
pub fn describe_variable(name: &str) -> Option<VariableDescription> {
    let table = table();
    of_rows(&table.nccl, name, "NCCL")
        .or_else(|| of_rows(&table.torch, name, "PyTorch"))
        .or_else(|| {
            let (name, about) = table.others.get_key_value(name)?;
            Some(description(name, "another library", about))
        })
        .or_else(|| {
            let (name, meant) = table.mistaken.get_key_value(name)?;
            Some(VariableDescription {
                name,
                reader: "no release of NCCL",
                releases: Vec::new(),
                effect: None,
                value: None,
                default: None,
                cost: None,
                instead: Some(meant),
            })
        })
}

/// The names in the table of variables that begin with `prefix`, sorted.
pub fn variable_names(prefix: &str) -> Vec<&'static str> {
    let table = table();
    let rows = table.nccl.iter().chain(&table.torch).map(|row| row.name.as_str());
    let mut names: Vec<_> = rows.chain(table.others.keys().map(String::as_str)).collect();
    names.retain(|name| name.starts_with(prefix));
    names.sort_unstable();
    names.dedup();
    names
}

/// The rows of a name differ in their releases; the last one has the present format.
fn of_rows(rows: &'static [VariableRow], name: &str, reader: &'static str) -> Option<VariableDescription> {
    let rows: Vec<_> = rows.iter().filter(|row| row.name == name).collect();
    let last = rows.last()?;
    let releases = rows.iter().map(|row| match &row.until {
        Some(until) => format!("{} to {until}", row.since),
        None => format!("{} and later", row.since),
    });
    Some(VariableDescription {
        releases: releases.collect(),
        instead: last.old_name_of.as_deref(),
        ..description(&last.name, reader, &last.about)
    })
}

fn description(name: &'static str, reader: &'static str, about: &'static VariableUse) -> VariableDescription {
    VariableDescription {
        name,
        reader,
        releases: Vec::new(),
        effect: about.what.as_deref(),
        value: Some(value(about)),
        default: about.default.as_deref(),
        cost: about.costs.as_ref().map(cost),
        instead: None,
    }
}

fn value(about: &VariableUse) -> String {
    let words = || about.of.join(", ");
    let case = if about.exact { "; case matters" } else { "" };
    let kind = match about.reads {
        Reads::Number => "a number".to_owned(),
        Reads::Flag | Reads::Digit => "0 or 1".to_owned(),
        Reads::Word | Reads::Choice => format!("one of {}{case}", words()),
        Reads::Words => format!("a list of {}, separated by commas{case}", words()),
        Reads::Level => {
            let levels: Vec<_> = table().levels.iter().map(|level| level.name.as_str()).collect();
            format!("a distance: {}", levels.join(", "))
        }
        Reads::Boolean => "1, T, TRUE, 0, F or FALSE".to_owned(),
        Reads::Unsigned => "a whole number".to_owned(),
        Reads::Processors => "numbers of processors, separated by commas".to_owned(),
        Reads::Thresholds => "six sizes in bytes, separated by blanks".to_owned(),
        Reads::Address => "IPV4:PORT, [IPV6]:PORT or HOSTNAME:PORT".to_owned(),
        Reads::AddressRange => "ADDRESS/LENGTH".to_owned(),
        Reads::Path => "a file".to_owned(),
        Reads::Timeout => "a number of seconds".to_owned(),
        Reads::One => "0 or 1, of which only 1 has an effect".to_owned(),
        Reads::Threads => "a multiple of 32".to_owned(),
        Reads::Buffer => format!("a size in bytes, a multiple of {}", about.unit.unwrap_or(1)),
        Reads::Prefix => format!("one of {}; case matters", words()),
        Reads::Algorithms => "a list of algorithms, separated by commas; since 2.24 also FUNCTION:LIST;…".to_owned(),
        Reads::Protocols => {
            "a list of LL, LL128 and Simple, separated by commas; since 2.24 also FUNCTION:LIST;…".to_owned()
        }
        Reads::Interfaces => {
            "prefixes of interfaces, separated by commas; ^ excludes them, = takes whole names".to_owned()
        }
        Reads::Devices => {
            "prefixes of RDMA devices with :PORT, separated by commas; ^ excludes them, = takes whole names".to_owned()
        }
        Reads::NetDevices => "AUTO, ALL or MAX:NUMBER".to_owned(),
        Reads::CtaPolicy => "DEFAULT, EFFICIENCY, ZERO, or several of them joined by |".to_owned(),
        Reads::Switch => "a boolean".to_owned(),
        Reads::Integer => "an integer".to_owned(),
        Reads::Text => "text".to_owned(),
    };
    match about.range {
        Some((least, most)) => format!("{kind} from {least} to {most}"),
        None => kind,
    }
}

fn cost(costs: &Costs) -> String {
    let place = match costs.place {
        CostScope::Image => " in an image",
        CostScope::Anywhere => "",
    };
    let values = match costs.when.as_str() {
        "set" => "setting it".to_owned(),
        "zero" => "the value 0".to_owned(),
        "one" => "the value 1".to_owned(),
        "nonzero" => "a value other than 0".to_owned(),
        "not-negative" => "a value of 0 or more".to_owned(),
        words => format!("the value {}", words.split(' ').collect::<Vec<_>>().join(" or ")),
    };
    format!("{values}{place} has a cost: {}", costs.why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions() {
        let disable = describe_variable("NCCL_IB_DISABLE").unwrap();
        assert_eq!((disable.reader, disable.value.as_deref()), ("NCCL", Some("0 or 1")));
        assert!(disable.effect.is_some() && disable.releases.len() == 1, "{disable:?}");
        let algo = describe_variable("NCCL_ALGO").unwrap();
        assert_eq!(algo.releases, ["2.5.6 and later"]);
        assert!(algo.cost.unwrap().starts_with("setting it in an image has a cost: it excludes algorithms"));
        assert_eq!(describe_variable("NCCL_AGG_CHANNEL_SIZE").unwrap().releases, ["2.10.3 to 2.19.4"]);
        let size = describe_variable("NCCL_CGA_CLUSTER_SIZE").unwrap();
        assert_eq!(size.value.as_deref(), Some("a number from 0 to 8"));
        assert_eq!(describe_variable("NCCL_NO_SUCH_NAME"), None);
    }

    #[test]
    fn every_name_of_the_table_has_a_description() {
        let table = table();
        let names = variable_names("");
        assert!(names.len() > 200, "{} names", names.len());
        for name in names.into_iter().chain(table.mistaken.keys().map(String::as_str)) {
            assert_eq!(describe_variable(name).unwrap().name, name);
        }
        for (name, meant) in &table.mistaken {
            assert_eq!(describe_variable(name).unwrap().instead, Some(meant.as_str()));
        }
        assert!(variable_names("NCCL_IB_").iter().all(|name| name.starts_with("NCCL_IB_")));
    }
}
