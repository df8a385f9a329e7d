//! Host and GPU descriptions as users write them: `driver=550.54,gpu=h100x8`.

use crate::value::FactType;
use std::str::FromStr;

use crate::machine::{Fabric, Gpu, Host, Nic};
use model::{Arch, Version, suggestion_or_all};

use super::models;

impl Host {
    /// Keys of a host description.
    pub const KEYS: &'static [&'static str] = &["name", "driver", "cuda", "gpu", "fabric", "rdma", "kernel"];

    /// Builds a host from keys and values.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut host =
            Self { name: String::new(), driver: None, cuda: None, gpu: None, fabric: None, rdma: None, kernel: None };
        let mut seen: Vec<(&str, &str)> = Vec::new();
        for (key, value) in pairs {
            if seen.iter().any(|(other, _)| *other == key) {
                return Err(format!("duplicate key '{key}'"));
            }
            host.set(key, value)?;
            seen.push((key, value));
        }
        if host.driver.is_none() && host.gpu.is_none() && host.rdma.is_none() {
            return Err("a host needs at least a driver, a gpu or rdma".to_owned());
        }
        if host.name.is_empty() {
            // Equal descriptions have equal names, whatever the order of their keys.
            let said = |key: &&str| seen.iter().find(|(other, _)| other == key);
            let pairs = Self::KEYS.iter().filter_map(said).map(|(key, value)| format!("{key}={value}"));
            host.name = pairs.collect::<Vec<_>>().join(",");
        }
        Ok(host)
    }

    /// Fills in what this description leaves out from another one.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            name: self.name,
            driver: self.driver.or(other.driver),
            cuda: self.cuda.or(other.cuda),
            gpu: self.gpu.or(other.gpu),
            fabric: self.fabric.or(other.fabric),
            rdma: self.rdma.or(other.rdma),
            kernel: self.kernel.or(other.kernel),
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let unknown = |names: &[&'static str]| {
            format!("invalid {key}={value}; {}", suggestion_or_all(value, names.iter().copied()))
        };
        match key {
            "name" => value.clone_into(&mut self.name),
            "driver" => self.driver = Some(numbers(key, value, "550.54.15")?),
            "cuda" => self.cuda = Some(numbers(key, value, "12.4")?),
            "gpu" => self.gpu = Some(value.parse()?),
            "fabric" => self.fabric = Some(Fabric::parse(value).ok_or_else(|| unknown(Fabric::WORDS))?),
            "rdma" => self.rdma = Some(Nic::parse(value).ok_or_else(|| unknown(Nic::WORDS))?),
            "kernel" => {
                let version = Version::parse(value);
                self.kernel = Some(version.ok_or_else(|| no_version(key, value, "5.15.0-91-generic"))?);
            }
            _ => return Err(format!("unknown key '{key}'; {}", suggestion_or_all(key, Self::KEYS.iter().copied()))),
        }
        Ok(())
    }
}

impl Gpu {
    /// Builds a GPU from NVIDIA's product name, such as `NVIDIA H100 80GB HBM3`, and the architecture that the GPU
    /// reports, if it was queried. Returns `None` if neither determines the architecture.
    pub fn of_model(product: &str, arch: Option<Arch>) -> Option<Self> {
        match (models::spoken_of(product), arch) {
            (Some((name, known, class)), arch) => {
                Some(Self { name: name.to_owned(), arch: arch.unwrap_or(known), class: Some(class), count: None })
            }
            (None, Some(arch)) => Some(Self { name: product.to_owned(), arch, class: None, count: None }),
            (None, None) => None,
        }
    }
}

/// Parses a version of at least two numbers and nothing else: a single number could not be compared.
fn numbers(key: &str, value: &str, such: &str) -> Result<Version, String> {
    let parts: Vec<_> = value.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let version = Version::parse(value).filter(|_| parts.len() > 1 && parts.iter().all(is_number));
    version.ok_or_else(|| no_version(key, value, such))
}

fn no_version(key: &str, value: &str, such: &str) -> String {
    format!("invalid version {key}={value}: expected a version such as {such}")
}

/// Parses `driver=550.54,gpu=h100x8`.
impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pairs = text.split(',').map(|part| {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("'{part}' is not KEY=VALUE, such as driver=550.54 or gpu=h100x8"))?;
            if value.split_whitespace().skip(1).any(|word| word.contains('=')) {
                return Err(format!("'{part}': separate the keys with commas, as in driver=550.54,gpu=h100x8"));
            }
            Ok::<_, String>((key.trim(), value.trim()))
        });
        Self::from_pairs(pairs.collect::<Result<Vec<_>, _>>()?)
    }
}

/// Parses `h100`, `h100x8` or `sm_90x8`.
impl FromStr for Gpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A model name may itself end like a count of GPUs: rtx5090.
        let counted = || {
            let (name, count) = text.rsplit_once('x')?;
            let count = count.parse().ok().filter(|count| *count > 0)?;
            Some((name, models::find(name)?, Some(count)))
        };
        let (name, (arch, class), count) = models::find(text)
            .map(|model| (text, model, None))
            .or_else(counted)
            .ok_or_else(|| format!("unknown GPU '{text}'; {}", models::suggestion(text)))?;
        Ok(Self { name: name.to_owned(), arch, class, count })
    }
}

#[cfg(test)]
mod tests {
    use crate::machine::Class;

    use super::*;

    #[test]
    fn host_descriptions_are_parsed() {
        let host: Host = "driver=550.54,gpu=h100x8,fabric=nvswitch,rdma=mlx5,kernel=5.15.0-91-generic".parse().unwrap();
        assert_eq!(host.name, "driver=550.54,gpu=h100x8,fabric=nvswitch,rdma=mlx5,kernel=5.15.0-91-generic");
        assert_eq!(host.driver, Version::parse("550.54"));
        let gpu = host.gpu.unwrap();
        assert_eq!((&*gpu.name, gpu.arch.to_string(), gpu.count), ("h100", "90".to_owned(), Some(8)));
        assert_eq!(
            (gpu.class, host.fabric, host.rdma),
            (Some(Class::DataCenter), Some(Fabric::NvSwitch), Some(Nic::Mlx5))
        );
        assert_eq!("gpu=t4,name=old one".parse::<Host>().unwrap().to_string(), "old one");
    }

    #[test]
    fn gpus_are_parsed_by_model_or_architecture() {
        for (text, arch, count) in [
            ("rtx5090", "120", None),
            ("rtx5090x2", "120", Some(2)),
            ("RTX PRO 6000", "120", None),
            ("H200x8", "90", Some(8)),
            ("sm_103", "103", None),
            ("sm_90x16", "90", Some(16)),
        ] {
            let gpu: Gpu = text.parse().unwrap();
            assert_eq!((gpu.arch.to_string().as_str(), gpu.count), (arch, count), "{text}");
        }
    }

    #[test]
    fn product_names_are_matched_to_models() {
        for (product, name, class) in [
            ("NVIDIA H100 80GB HBM3", "h100", "datacenter"),
            ("NVIDIA A100-SXM4-80GB", "a100", "datacenter"),
            ("Tesla V100-SXM2-32GB", "v100", "datacenter"),
            ("NVIDIA GH200 480GB", "gh200", "datacenter"),
            ("NVIDIA GeForce RTX 4090", "rtx4090", "consumer"),
            ("NVIDIA RTX 6000 Ada Generation", "rtx6000ada", "workstation"),
            ("Quadro RTX 6000", "quadrortx6000", "workstation"),
            ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtxpro6000blackwellserver", "datacenter"),
            ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtxpro6000", "workstation"),
            ("NVIDIA RTX 4000 SFF Ada Generation", "rtx4000sffada", "workstation"),
            ("NVIDIA GeForce RTX 5070 Ti", "rtx5070ti", "consumer"),
        ] {
            let gpu = Gpu::of_model(product, None).unwrap();
            assert_eq!((&*gpu.name, gpu.class.map(Class::name)), (name, Some(class)), "{product}");
        }
        assert_eq!(Gpu::of_model("NVIDIA X900", None), None);
        assert_eq!(Gpu::of_model("NVIDIA X900", "sm_90".parse().ok()).unwrap().arch.to_string(), "90");
    }

    #[test]
    fn invalid_descriptions_are_reported() {
        for (text, why) in [
            ("", "'' is not KEY=VALUE"),
            ("driver=550.54,h100", "'h100' is not KEY=VALUE"),
            ("drvier=550.54", "unknown key 'drvier'; did you mean driver?"),
            ("driver=550.54,driver=535.1", "duplicate key 'driver'"),
            ("driver=550.54 gpu=h100", "separate the keys with commas"),
            ("driver=550", "invalid version driver=550: expected a version such as 550.54.15"),
            ("driver=r550.54", "invalid version"),
            ("gpu=h1000", "unknown GPU 'h1000'; did you mean h100?"),
            ("gpu=h1000x8", "unknown GPU 'h1000x8'; did you mean h100x8?"),
            ("gpu=8xh100", "unknown GPU '8xh100'; did you mean h100x8?"),
            ("gpu=8xH100", "unknown GPU '8xH100'; did you mean h100x8?"),
            ("gpu=H100 SXM", "unknown GPU 'H100 SXM'; did you mean h100?"),
            ("gpu=tpu", "unknown GPU 'tpu'; available: an architecture such as sm_90, or one of a10, a100"),
            ("gpu=h100x0", "unknown GPU"),
            ("gpu=sm_90a", "unknown GPU"),
            ("gpu=h100,fabric=nvlink", "invalid fabric=nvlink; available: nvswitch, pcie"),
            ("fabric=pcie", "at least a driver, a gpu or rdma"),
        ] {
            let error = text.parse::<Host>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
