//! GPUs of a container, in the syntax of `docker run --gpus`.

use std::fmt;
use std::str::FromStr;

/// A selection of GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuSelection {
    /// All GPUs of the host.
    All,
    /// The first N GPUs.
    Count(u32),
    /// GPUs by index, UUID or MIG name.
    These(Vec<String>),
}

/// The value of `docker run --gpus`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuRequest {
    /// Which GPUs.
    pub gpus: GpuSelection,
    /// Capabilities of the driver beside `gpu`, such as `utility`; empty for those that the image names.
    pub capabilities: Vec<String>,
}

impl GpuSelection {
    /// Names of the Container Device Interface for these GPUs.
    pub(in super::super) fn cdi_names(&self) -> Vec<String> {
        let name = |which: &str| format!("nvidia.com/gpu={which}");
        match self {
            Self::All => vec![name("all")],
            Self::Count(count) => (0..*count).map(|index| name(&index.to_string())).collect(),
            Self::These(ids) => ids.iter().map(|id| name(id)).collect(),
        }
    }
}

impl fmt::Display for GpuSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Count(count) => write!(f, "{count}"),
            // Docker's command line parses the value as CSV.
            Self::These(ids) => write!(f, "\"device={}\"", ids.join(",")),
        }
    }
}

impl fmt::Display for GpuRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.capabilities {
            [] => self.gpus.fmt(f),
            names => write!(f, "{},\"capabilities={}\"", self.gpus, names.join(",")),
        }
    }
}

impl FromStr for GpuRequest {
    type Err = String;

    /// Parses CSV of `all`, a number, or `KEY=VALUE` (docker/cli, `opts/gpus.go`): `all`, `2`, `"device=0,2"`,
    /// `all,"capabilities=compute,utility"`. In contrast to Docker, `device=0,2` needs no quotes.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut values: Vec<(String, String)> = Vec::new();
        let mut takes_ids = false;
        for (field, is_quoted) in fields(text)? {
            match (field.split_once('='), values.last_mut()) {
                (None, Some((_, ids))) if takes_ids => *ids = format!("{ids},{field}"),
                (None, _) => values.push(("count".to_owned(), field)),
                (Some((key, value)), _) => {
                    takes_ids = key == "device" && !is_quoted;
                    values.push((key.to_owned(), value.to_owned()));
                }
            }
        }
        for (index, (key, value)) in values.iter().enumerate() {
            if values.iter().take(index).any(|(other, _)| other == key) {
                return Err(format!("{key} is given twice"));
            }
            refuse(key, value)?;
        }
        let list = |wanted: &str| {
            let value = values.iter().find(|(key, _)| key == wanted).map(|(_, value)| value);
            value.map(|value| value.split(',').map(ToOwned::to_owned).collect::<Vec<_>>())
        };
        let gpus = match (list("device"), list("count").as_deref()) {
            (Some(_), Some(_)) => return Err("device=ID,... and a number exclude each other: name one".to_owned()),
            (Some(ids), None) => GpuSelection::These(ids),
            (None, Some([count])) if count == "all" => GpuSelection::All,
            (None, Some(count)) => {
                GpuSelection::Count(count.concat().parse().ok().filter(|count| *count > 0).ok_or(USAGE)?)
            }
            // As in Docker, a request that names none is one for one GPU.
            (None, None) => GpuSelection::Count(1),
        };
        Ok(Self { gpus, capabilities: list("capabilities").unwrap_or_default() })
    }
}

const USAGE: &str = "expected all, a number of at least 1, or device=ID,...";

/// Returns an error for a value that the probe cannot request, with what to do.
fn refuse(key: &str, value: &str) -> Result<(), String> {
    let is_list = value.split(',').all(|part| !part.is_empty());
    match (key, value) {
        ("device", _) if !is_list => Err(USAGE.to_owned()),
        ("capabilities", _) if !is_list => Err("expected capabilities=NAME,...".to_owned()),
        ("count" | "device" | "capabilities", _) | ("driver", "" | "nvidia") => Ok(()),
        ("driver", "cdi") => Err("driver=cdi: leave it out, and add --gpu-mode cdi".to_owned()),
        ("driver" | "options", _) => Err(format!("{key}={value} is not supported: leave it out")),
        _ => Err(format!("{key}= is unknown: use count=, device= and capabilities=")),
    }
}

/// The fields of a line of CSV, and true for each that is quoted.
fn fields(text: &str) -> Result<Vec<(String, bool)>, String> {
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let (field, after) = if let Some(quoted) = rest.strip_prefix('"') {
            let (field, after) = quoted.split_once('"').ok_or("a quotation mark is not closed")?;
            ((field.to_owned(), true), after)
        } else {
            let (field, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
            ((field.to_owned(), false), after)
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(fields),
            None => return Err("expected a comma behind a quotation mark".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<GpuRequest, String> {
        text.parse()
    }

    fn these(ids: &[&str]) -> GpuSelection {
        GpuSelection::These(ids.iter().map(|id| (*id).to_owned()).collect())
    }

    #[test]
    fn gpu_requests_have_dockers_syntax() {
        for (text, gpus, capabilities, shown) in [
            ("all", GpuSelection::All, "", "all"),
            ("2", GpuSelection::Count(2), "", "2"),
            ("1", GpuSelection::Count(1), "", "1"),
            ("count=3", GpuSelection::Count(3), "", "3"),
            ("count=all", GpuSelection::All, "", "all"),
            ("device=0,GPU-1a", these(&["0", "GPU-1a"]), "", "\"device=0,GPU-1a\""),
            ("\"device=0,1\"", these(&["0", "1"]), "", "\"device=0,1\""),
            ("device=1", these(&["1"]), "", "\"device=1\""),
            ("driver=nvidia,count=2", GpuSelection::Count(2), "", "2"),
            ("capabilities=utility", GpuSelection::Count(1), "utility", "1,\"capabilities=utility\""),
            (
                "\"device=0,1\",capabilities=utility",
                these(&["0", "1"]),
                "utility",
                "\"device=0,1\",\"capabilities=utility\"",
            ),
            (
                "device=0,1,capabilities=utility",
                these(&["0", "1"]),
                "utility",
                "\"device=0,1\",\"capabilities=utility\"",
            ),
            (
                "all,\"capabilities=compute,utility\"",
                GpuSelection::All,
                "compute,utility",
                "all,\"capabilities=compute,utility\"",
            ),
        ] {
            let request = parse(text).unwrap();
            assert_eq!((&request.gpus, &*request.capabilities.join(",")), (&gpus, capabilities), "{text}");
            assert_eq!(request.to_string(), shown);
            assert_eq!(parse(shown), Ok(request));
        }
    }

    #[test]
    fn odd_gpu_requests_are_refused() {
        for (odd, why) in [
            ("", "a number of at least 1"),
            ("0", "a number of at least 1"),
            ("none", "a number of at least 1"),
            ("-1", "a number of at least 1"),
            ("device=", "device=ID,..."),
            ("device=0,", "device=ID,..."),
            ("capabilities=", "capabilities=NAME,..."),
            ("all,2", "count is given twice"),
            ("2,\"device=0\"", "exclude each other"),
            ("\"device=0\",1", "exclude each other"),
            ("driver=cdi,device=nvidia.com/gpu=all", "--gpu-mode cdi"),
            ("driver=amd,count=1", "driver=amd is not supported: leave it out"),
            ("all,options=a=b", "options=a=b is not supported: leave it out"),
            ("gpu=1", "use count=, device= and capabilities="),
            ("\"device=0", "not closed"),
            ("\"device=0\"1", "expected a comma"),
        ] {
            let error = parse(odd).unwrap_err();
            assert!(error.contains(why), "{odd}: {error}");
        }
    }

    #[test]
    fn gpus_have_cdi_names() {
        assert_eq!(GpuSelection::Count(2).cdi_names(), ["nvidia.com/gpu=0", "nvidia.com/gpu=1"]);
        assert_eq!(GpuSelection::All.cdi_names(), ["nvidia.com/gpu=all"]);
        assert_eq!(these(&["GPU-1a"]).cdi_names(), ["nvidia.com/gpu=GPU-1a"]);
    }
}
