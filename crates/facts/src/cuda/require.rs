//! `NVIDIA_REQUIRE_*`: conditions that NVIDIA's container runtime checks before it starts a container
//! (nvidia-container-toolkit, `internal/config/image/cuda_image.go` and `internal/requirements`; libnvidia-container,
//! `src/cli/dsl.c`).
//!
//! A requirement is a list of terms separated by spaces, one of which must hold. A term is a list of factors separated
//! by commas, all of which must hold. A factor is a property, an operator and a value:
//! `cuda>=12.4 brand=tesla,driver>=470,driver<471`.
//!
//! NVIDIA's base images list the driver branches that their forward-compatibility package supports, once for each brand
//! of GPUs.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::machine::Class;
use model::{Fact, Gap, Site, Version};

use super::super::image::no_configuration;
use super::super::start::LONGEST_WORD;
use super::super::value::Groups;
use super::super::{Context, Facts, key};

/// Values that Go's `strconv.ParseBool` accepts as true.
const TRUE: [&str; 6] = ["1", "t", "T", "true", "TRUE", "True"];

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    facts.insert(
        key::NVIDIA_REQUIREMENTS,
        match context.config {
            None => Fact::Unknown(no_configuration()),
            Some(config) => match config.unknown.any(|name| name.starts_with("NVIDIA_") || name == "CUDA_VERSION") {
                Some(gap) => Fact::Unknown(gap.clone()),
                None => requirements(&config.environment),
            },
        },
    );
}

/// Most factors of all requirements. NVIDIA's base images have some 100.
const MOST_FACTORS: usize = 5_000;

/// Requirements in an environment, by variable.
fn requirements(environment: &BTreeMap<String, String>) -> Fact<Groups> {
    if environment.get("NVIDIA_DISABLE_REQUIRE").is_some_and(|value| TRUE.contains(&&**value)) {
        return Fact::Absent;
    }
    let is_requirement =
        |name: &str| name.starts_with("NVIDIA_REQUIRE_") && !name.starts_with("NVIDIA_REQUIRE_JETPACK");
    if let Some((name, value)) =
        environment.iter().find(|(name, value)| is_requirement(name) && value.len() > LONGEST_WORD)
    {
        return Fact::Unknown(Gap::new(format!(
            "{name} has {} bytes, and Linux starts no process with more than {LONGEST_WORD}",
            value.len()
        )));
    }
    let mut said: BTreeMap<&str, String> = environment
        .iter()
        .filter(|(name, _)| is_requirement(name))
        .map(|(name, value)| (&**name, value.clone()))
        .collect();
    // Images older than these variables have only CUDA_VERSION.
    let version = environment.get("CUDA_VERSION").filter(|version| !version.is_empty());
    if let (Some(version), true) = (version, said.get("NVIDIA_REQUIRE_CUDA").is_none_or(String::is_empty)) {
        let release: Vec<&str> = version.split('.').take(2).collect();
        said.insert("CUDA_VERSION", format!("cuda>={}", release.join(".")));
    }
    let factors: usize = said.values().map(|text| text.split([' ', ',']).count()).sum();
    if factors > MOST_FACTORS {
        let why = format!("NVIDIA_REQUIRE_* variables have {factors} conditions, and at most {MOST_FACTORS} are read");
        return Fact::Unknown(Gap::new(why));
    }
    let groups: Groups = said
        .iter()
        .map(|(name, text)| ((*name).to_owned(), terms(text)))
        .filter_map(|(name, terms)| Some((name, terms?)))
        .collect();
    let at = groups.keys().map(|name| Site::Config(format!("Env {name}"))).collect();
    if groups.is_empty() { Fact::Absent } else { Fact::Seen { value: groups, at } }
}

/// Terms of one variable, by number.
type Terms = BTreeMap<String, Vec<String>>;

/// Parses terms, each a list of factors, and numbers them; `None` when there is nothing to check.
fn terms(text: &str) -> Option<Terms> {
    let factors = |term: &str| -> Vec<String> {
        term.split(',').filter(|factor| !factor.is_empty()).map(ToOwned::to_owned).collect()
    };
    let terms: Vec<_> = text.split(' ').map(factors).filter(|factors| !factors.is_empty()).collect();
    let width = terms.len().to_string().len();
    let named: Terms =
        terms.into_iter().enumerate().map(|(index, term)| (format!("{:0width$}", index + 1), term)).collect();
    (!named.is_empty()).then_some(named)
}

/// Host properties that requirements can refer to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostProperties<'a> {
    pub(crate) cuda: Option<&'a Version>,
    /// The host has at least this CUDA release.
    pub(crate) cuda_min: Option<&'a Version>,
    pub(crate) driver: Option<&'a Version>,
    /// Compute capability.
    pub(crate) arch: Option<&'a Version>,
    /// Market segment of the GPUs, which limits their brand.
    pub(crate) class: Option<Class>,
}

/// Result of checking a requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequirementTruth {
    Yes,
    No,
    /// The reason why it cannot be decided.
    Unknown(String),
}

/// Checks the terms of one variable. Where the GPUs may have several brands, all of them must give the same result.
pub(crate) fn check(terms: &Terms, host: HostProperties<'_>) -> RequirementTruth {
    let mut results = brands(host.class).iter().map(|&brand| check_brand(terms, host, Some(brand)));
    match results.next() {
        Some(first) if results.all(|result| result == first) => first,
        _ => check_brand(terms, host, None),
    }
}

/// Brands that the container runtime can see on the GPUs of a market segment, in lower case; none if they are unknown.
///
/// libnvidia-container (`driver_get_device_brand` in `src/driver.c`) knows six of NVML's brands and calls the others
/// Unknown. NVML calls GeForce GPUs GeForce, and data-centre GPUs Tesla or NVIDIA.
const fn brands(class: Option<Class>) -> &'static [&'static str] {
    match class {
        Some(Class::DataCenter) => &["tesla", "unknown", "nvidia"],
        Some(Class::Consumer) => &["geforce"],
        // NVML has several brands for workstations, and they changed.
        Some(Class::Workstation) | None => &[],
    }
}

/// Checks the terms of one variable for GPUs of a brand; `None` if it is unknown.
fn check_brand(terms: &Terms, host: HostProperties<'_>, brand: Option<&str>) -> RequirementTruth {
    let mut result = RequirementTruth::No;
    for factors in terms.values() {
        let mut holds = RequirementTruth::Yes;
        for factor in factors {
            match factor_holds(factor, host, brand) {
                RequirementTruth::No => {
                    holds = RequirementTruth::No;
                    break;
                }
                unknown @ RequirementTruth::Unknown(_) => holds = unknown,
                RequirementTruth::Yes => {}
            }
        }
        match holds {
            RequirementTruth::Yes => return RequirementTruth::Yes,
            unknown @ RequirementTruth::Unknown(_) if result == RequirementTruth::No => result = unknown,
            _ => {}
        }
    }
    result
}

fn factor_holds(factor: &str, host: HostProperties<'_>, brand: Option<&str>) -> RequirementTruth {
    let unknown = |what: &str| RequirementTruth::Unknown(format!("{what}: '{factor}'"));
    let end = factor.find(['<', '>', '=', '!']).unwrap_or(factor.len());
    let (property, rest) = factor.split_at(end);
    let Some((holds, value)) = operator(rest) else {
        return unknown("the container runtime does not know the operator");
    };
    // libnvidia-container ignores case and rejects unknown properties; newer versions skip them.
    let (known, at_least) = match property.to_ascii_lowercase().as_str() {
        "cuda" => (host.cuda, host.cuda_min),
        "driver" => (host.driver, None),
        "arch" => (host.arch, None),
        "brand" => return brand_holds(rest, brand).unwrap_or_else(|| unknown("the brand of the GPU is unknown")),
        _ => return unknown("versions of the container runtime treat unknown properties differently"),
    };
    let is_version = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let Some(asked) = Version::parse(value).filter(|_| is_version) else { return unknown("not a version") };
    let possible = orderings(known, at_least, &asked);
    if possible.iter().all(|order| holds(*order)) {
        RequirementTruth::Yes
    } else if possible.iter().any(|order| holds(*order)) {
        unknown(&format!("{property} of the host is unknown"))
    } else {
        RequirementTruth::No
    }
}

/// Checks a requirement of a brand; `None` if the GPU's brand is unknown or the operator is not for text.
fn brand_holds(rest: &str, brand: Option<&str>) -> Option<RequirementTruth> {
    let (is_wanted, value) = match rest.strip_prefix("!=") {
        Some(value) => (false, value),
        None => (true, rest.strip_prefix('=')?),
    };
    let is_brand = value.eq_ignore_ascii_case(brand?);
    Some(if is_brand == is_wanted { RequirementTruth::Yes } else { RequirementTruth::No })
}

/// Possible orderings of a host property relative to the required version.
fn orderings(known: Option<&Version>, at_least: Option<&Version>, asked: &Version) -> Vec<Ordering> {
    match (known, at_least.map(|least| least.cmp(asked))) {
        (Some(known), _) => vec![known.cmp(asked)],
        (None, Some(Ordering::Greater)) => vec![Ordering::Greater],
        (None, Some(Ordering::Equal)) => vec![Ordering::Equal, Ordering::Greater],
        (None, Some(Ordering::Less) | None) => vec![Ordering::Less, Ordering::Equal, Ordering::Greater],
    }
}

/// Returns true when the operator holds for the ordering of the host's version relative to the required one.
type Operator = fn(Ordering) -> bool;

/// Splits the operator from the value after it.
fn operator(text: &str) -> Option<(Operator, &str)> {
    let operators: [(&str, Operator); 6] = [
        ("!=", Ordering::is_ne),
        ("<=", Ordering::is_le),
        (">=", Ordering::is_ge),
        ("=", Ordering::is_eq),
        ("<", Ordering::is_lt),
        (">", Ordering::is_gt),
    ];
    operators.into_iter().find_map(|(name, holds)| Some((holds, text.strip_prefix(name)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::FactType;

    /// A host that nothing is known about.
    const NOTHING: HostProperties<'_> =
        HostProperties { cuda: None, cuda_min: None, driver: None, arch: None, class: None };

    fn said(pairs: &[(&str, &str)]) -> Fact<Groups> {
        requirements(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    /// First letter of yes, no or unknown.
    fn answer(requirement: &str, cuda: &str, driver: &str) -> char {
        let cuda = Version::parse(cuda);
        let driver = Version::parse(driver);
        let arch = Version::parse("8.0");
        let host = HostProperties { cuda: cuda.as_ref(), driver: driver.as_ref(), arch: arch.as_ref(), ..NOTHING };
        letter(&check(&terms(requirement).unwrap(), host))
    }

    fn letter(truth: &RequirementTruth) -> char {
        match truth {
            RequirementTruth::Yes => 'y',
            RequirementTruth::No => 'n',
            RequirementTruth::Unknown(_) => 'u',
        }
    }

    #[test]
    fn variables_that_count() {
        assert_eq!(said(&[("NVIDIA_REQUIRE_JETPACK", "csv-mounts=all"), ("PATH", "/bin")]), Fact::Absent);
        assert_eq!(said(&[("NVIDIA_REQUIRE_CUDA", "cuda>=12.4"), ("NVIDIA_DISABLE_REQUIRE", "True")]), Fact::Absent);
        assert_eq!(said(&[("NVIDIA_REQUIRE_CUDA", " ")]), Fact::Absent);
        let fact =
            said(&[("NVIDIA_REQUIRE_CUDA", "cuda>=12.4 brand=tesla,driver>=470"), ("NVIDIA_DISABLE_REQUIRE", "yes")]);
        assert_eq!(
            fact.value().unwrap().to_value().to_string(),
            "NVIDIA_REQUIRE_CUDA=1=cuda>=12.4, 2=brand=tesla, driver>=470"
        );
        let legacy = said(&[("CUDA_VERSION", "10.1.243")]);
        assert_eq!(legacy.value().unwrap().to_value().to_string(), "CUDA_VERSION=1=cuda>=10.1");
    }

    #[test]
    fn requirements_are_checked() {
        const IMAGE: &str = "cuda>=12.4 brand=tesla,driver>=470,driver<471 brand=geforce,driver>=535,driver<536";
        for (requirement, cuda, driver, expected) in [
            ("cuda>=12.4", "12.4", "550.54", 'y'),
            ("cuda>=12.4", "12.2", "535.104", 'n'),
            ("CUDA>=12.4", "12.8", "570.1", 'y'),
            ("driver>=535,driver<536", "12.2", "535.104.05", 'y'),
            ("driver>=535,driver<536", "12.4", "550.54", 'n'),
            ("arch>=8.0", "12.4", "550.54", 'y'),
            ("arch>8", "12.4", "550.54", 'n'),
            ("cuda!=12.4.0", "12.4", "550.54", 'n'),
            (IMAGE, "12.4", "550.54", 'y'),
            (IMAGE, "12.3", "545.23", 'n'),
            (IMAGE, "12.2", "535.104", 'u'),
            ("cuda>=12.4 nonsense", "12.4", "550.54", 'y'),
            ("nonsense", "12.4", "550.54", 'u'),
            ("cuda~12", "12.4", "550.54", 'u'),
            ("cuda>=latest", "12.4", "550.54", 'u'),
            ("cuda>=12.4", "", "550.54", 'u'),
        ] {
            assert_eq!(answer(requirement, cuda, driver), expected, "{requirement} with CUDA {cuda}, driver {driver}");
        }
    }

    #[test]
    fn cuda_version_counts_without_a_cuda_requirement() {
        let shown = |pairs: &[(&str, &str)]| {
            said(pairs).value().map(|groups| groups.to_value().to_string()).unwrap_or_default()
        };
        for (pairs, expected) in [
            (&[("CUDA_VERSION", "12"), ("NVIDIA_REQUIRE_CUDA", "")][..], "CUDA_VERSION=1=cuda>=12"),
            (&[("CUDA_VERSION", "12.4.1"), ("NVIDIA_REQUIRE_CUDA", "cuda>=9.0")], "NVIDIA_REQUIRE_CUDA=1=cuda>=9.0"),
            (
                &[("CUDA_VERSION", "12.4"), ("NVIDIA_REQUIRE_DRIVER", "driver>=470")],
                "CUDA_VERSION=1=cuda>=12.4, NVIDIA_REQUIRE_DRIVER=1=driver>=470",
            ),
            (&[("CUDA_VERSION", "")], ""),
            (&[("NVIDIA_REQUIRE_JETPACK_HOST_MOUNTS", "x"), ("REQUIRE_CUDA", "cuda>=9")], ""),
        ] {
            assert_eq!(shown(pairs), expected);
        }
        let Fact::Seen { at, .. } = said(&[("CUDA_VERSION", "12")]) else { panic!("nothing is required") };
        assert_eq!(at, [Site::Config("Env CUDA_VERSION".to_owned())]);
    }

    #[test]
    fn more_conditions_than_are_read_are_unknown() {
        let said =
            |count: usize| said(&[("NVIDIA_REQUIRE_A", &"cuda>=1 ".repeat(count)), ("NVIDIA_REQUIRE_B", "arch>=8")]);
        assert!(said(4_000).value().is_some());
        let Fact::Unknown(gap) = said(5_000) else { panic!("more conditions are read") };
        assert_eq!(gap.why, "NVIDIA_REQUIRE_* variables have 5002 conditions, and at most 5000 are read");
    }

    #[test]
    fn terms_are_numbered_in_their_order() {
        let text = |requirement: &str| {
            let terms = terms(requirement)?;
            let terms = terms.iter().map(|(number, factors)| format!("{number}={}", factors.join(", ")));
            Some(terms.collect::<Vec<_>>().join(", "))
        };
        assert_eq!(text("a  b,,c, ,"), Some("1=a, 2=b, c".to_owned()));
        assert_eq!(text(" , "), None);
        let ten = text("a b c d e f g h i j").unwrap();
        assert!(ten.starts_with("01=a, 02=b") && ten.ends_with("09=i, 10=j"), "{ten}");
    }

    /// Result of a requirement on a host with CUDA 12.4, driver 550.54 and GPUs of compute capability 8.0; the reason
    /// when it is unknown.
    fn held(requirement: &str) -> Result<bool, String> {
        let [cuda, driver, arch] = ["12.4", "550.54", "8.0"].map(|text| Version::parse(text).unwrap());
        let host = HostProperties { cuda: Some(&cuda), driver: Some(&driver), arch: Some(&arch), ..NOTHING };
        match check(&terms(requirement).unwrap(), host) {
            RequirementTruth::Yes => Ok(true),
            RequirementTruth::No => Ok(false),
            RequirementTruth::Unknown(why) => Err(why),
        }
    }

    #[test]
    fn every_operator_compares_versions() {
        for (operator, results) in [
            ("=", [false, true, false]),
            ("!=", [true, false, true]),
            ("<", [false, false, true]),
            ("<=", [false, true, true]),
            (">", [true, false, false]),
            (">=", [true, true, false]),
        ] {
            for (version, result) in ["12.3", "12.4", "12.10"].into_iter().zip(results) {
                assert_eq!(held(&format!("cuda{operator}{version}")), Ok(result), "{operator}{version}");
            }
        }
    }

    #[test]
    fn unknown_requirements_give_a_reason() {
        for (requirement, why) in [
            ("cuda", "the container runtime does not know the operator: 'cuda'"),
            ("cuda>=", "not a version: 'cuda>='"),
            ("cuda>=12.x", "not a version: 'cuda>=12.x'"),
            ("cuda>=x12", "not a version: 'cuda>=x12'"),
            ("brand=tesla", "the brand of the GPU is unknown: 'brand=tesla'"),
            ("gpu>=1", "versions of the container runtime treat unknown properties differently: 'gpu>=1'"),
        ] {
            assert_eq!(held(requirement), Err(why.to_owned()));
        }
        for property in ["cuda", "driver", "arch"] {
            let expected = format!("{property} of the host is unknown: '{property}>=1'");
            let requirement = terms(&format!("{property}>=1")).unwrap();
            assert_eq!(check(&requirement, NOTHING), RequirementTruth::Unknown(expected));
        }
    }

    #[test]
    fn a_lower_bound_decides_some_comparisons() {
        let least = Version::parse("13.4").unwrap();
        let host = HostProperties { cuda_min: Some(&least), ..NOTHING };
        for (operator, results) in [
            // For CUDA 13.3, 13.4 and 13.5.
            ("=", ['n', 'u', 'u']),
            ("!=", ['y', 'u', 'u']),
            ("<", ['n', 'n', 'u']),
            ("<=", ['n', 'u', 'u']),
            (">", ['y', 'u', 'u']),
            (">=", ['y', 'y', 'u']),
        ] {
            for (version, result) in ["13.3", "13.4", "13.5"].into_iter().zip(results) {
                let requirement = format!("cuda{operator}{version}");
                assert_eq!(letter(&check(&terms(&requirement).unwrap(), host)), result, "{requirement}");
            }
        }
    }

    #[test]
    fn brands_follow_from_the_market() {
        // The forms of NVIDIA_REQUIRE_CUDA in nvidia/cuda:12.4.1 and nvidia/cuda:13.2.0, shortened.
        const OLD: &str = "cuda>=12.4 brand=tesla,driver>=535,driver<536 brand=unknown,driver>=535,driver<536 \
            brand=nvidia,driver>=535,driver<536 brand=geforce,driver>=535,driver<536 brand=quadro,driver>=535";
        const NEW: &str = "cuda>=13.2 brand=unknown,driver>=535,driver<536 brand=grid,driver>=535,driver<536 \
            brand=tesla,driver>=535,driver<536 brand=nvidia,driver>=535,driver<536 brand=quadro,driver>=535";
        let [cuda, driver, other] = ["12.2", "535.104", "545.23"].map(|text| Version::parse(text).unwrap());
        for (requirement, class, driver, expected) in [
            (OLD, Some(Class::DataCenter), &driver, 'y'),
            (OLD, Some(Class::DataCenter), &other, 'n'),
            (OLD, Some(Class::Consumer), &driver, 'y'),
            (OLD, Some(Class::Workstation), &driver, 'u'),
            (OLD, None, &driver, 'u'),
            (NEW, Some(Class::DataCenter), &driver, 'y'),
            (NEW, Some(Class::Consumer), &driver, 'n'),
            (NEW, None, &other, 'u'),
            // The brands of data-centre GPUs differ here.
            ("brand=tesla", Some(Class::DataCenter), &driver, 'u'),
            ("brand!=GeForce", Some(Class::DataCenter), &driver, 'y'),
            ("BRAND=GeForce", Some(Class::Consumer), &driver, 'y'),
            ("brand>=geforce", Some(Class::Consumer), &driver, 'u'),
        ] {
            let host = HostProperties { cuda: Some(&cuda), driver: Some(driver), class, ..NOTHING };
            let result = letter(&check(&terms(requirement).unwrap(), host));
            assert_eq!(result, expected, "{requirement} on {class:?} with driver {driver}");
        }
    }

    #[test]
    fn one_term_is_enough_and_one_factor_too_many() {
        for (requirement, expected) in [
            ("cuda>=13 driver>=550", Ok(true)),
            ("driver>=550 brand=tesla", Ok(true)),
            ("brand=tesla driver>=550", Ok(true)),
            ("brand=tesla,driver>=560", Ok(false)),
            ("driver>=560,brand=tesla", Ok(false)),
            ("driver>=560 cuda>=13", Ok(false)),
        ] {
            assert_eq!(held(requirement), expected, "{requirement}");
        }
        // The first of several unknown terms is reported.
        assert!(held("cuda>=13 brand=tesla brand=geforce").unwrap_err().contains("'brand=tesla'"));
    }
}
