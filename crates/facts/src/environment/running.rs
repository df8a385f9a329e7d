//! Values of variables in a running process, as the libraries that run there read them.

use std::collections::BTreeMap;

use model::{Gap, Version};

use super::name::{Family, NcclBackend, Readers, has_torch_row};
use super::readings::{in_use, reading};
use super::vocabulary::{ReaderRelease, VariableUse, row, table};

/// A value that its reader does not take as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MisreadValue {
    /// Name of the variable.
    pub name: String,
    /// The setting and what its reader makes of it: `NCCL_ALGO=Bogus (no algorithm has this name)`.
    pub text: String,
    /// True if the job stops at it.
    pub stops: bool,
}

/// Values that their readers do not take as written, and the reason why others are unknown, if there is one. `None` is
/// a release that is not known.
pub fn misread_values(
    variables: &BTreeMap<String, String>,
    nccl: Option<Version>,
    torch: Option<Version>,
) -> (Vec<MisreadValue>, Option<Gap>) {
    let readers = Readers { nccl: None, nccl_version: nccl, torch_version: torch, backend: NcclBackend::Legacy };
    let mut found = Vec::new();
    let mut unknown = None;
    for (name, value) in variables {
        let Some((family, about)) = use_of(name, &readers) else { continue };
        match reading((name, value), family, about, &readers) {
            Ok(Some(misread)) => found.push(MisreadValue {
                name: name.clone(),
                text: misread.describe(name, value),
                stops: misread.stops,
            }),
            Ok(None) => {}
            Err(gap) => unknown = unknown.or(Some(gap)),
        }
    }
    (found, unknown)
}

/// The use of a variable in these releases, by the table alone: the strings of the libraries that run are not known.
fn use_of(name: &str, readers: &Readers<'_>) -> Option<(Family, &'static VariableUse)> {
    let family = Family::of(name)?;
    if family == Family::Nccl && !has_torch_row(name) {
        let (row, release) = row(&table().nccl, name, readers.nccl_version.as_ref())?;
        return (release == ReaderRelease::Now).then_some((family, &row.about));
    }
    Some((family, in_use(&readers.look_up(name)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misread(settings: &[(&str, &str)], nccl: Option<&str>) -> (Vec<(String, bool)>, bool) {
        let variables = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let torch = Version::parse("2.9.0");
        let (found, gap) = misread_values(&variables, nccl.and_then(Version::parse), torch);
        (found.into_iter().map(|value| (value.text, value.stops)).collect(), gap.is_some())
    }

    #[test]
    fn values_are_read_as_their_libraries_read_them() {
        let (found, unknown) = misread(
            &[
                ("NCCL_ALGO", "Bogus"),
                ("NCCL_BUFFSIZE", "4M"),
                ("NCCL_MIN_NCHANNELS", "4x"),
                ("NCCL_DEBUG", "WARN"),
                ("TORCH_NCCL_BLOCKING_WAIT", "maybe"),
                ("PATH", "Bogus"),
            ],
            Some("2.28.9"),
        );
        let names: Vec<_> = found.iter().map(|(text, stops)| (text.split_once(' ').unwrap().0, *stops)).collect();
        let expected = [
            ("NCCL_ALGO=Bogus", true),
            ("NCCL_BUFFSIZE=4M", true),
            ("NCCL_MIN_NCHANNELS=4x", false),
            ("TORCH_NCCL_BLOCKING_WAIT=maybe", true),
        ];
        assert_eq!(names, expected);
        assert!(!unknown);
    }

    #[test]
    fn a_value_that_releases_read_differently_needs_the_release() {
        assert_eq!(misread(&[("NCCL_ALGO", "Bogus")], None), (vec![], true));
        assert!(!misread(&[("NCCL_BUFFSIZE", "4M")], None).1, "all releases read it alike");
        assert_eq!(misread(&[("NCCL_ALGO", "Ring")], None), (vec![], false));
    }

    #[test]
    fn a_variable_that_the_release_does_not_read_has_no_wrong_value() {
        assert_eq!(misread(&[("NCCL_CTA_POLICY", "x")], Some("2.20.5")), (vec![], false));
    }
}
