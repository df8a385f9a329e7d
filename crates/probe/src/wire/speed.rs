//! A bandwidth that hardware can reach.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Highest bandwidth that is believed, in bytes per second. NVLink 6, the fastest link between GPUs, carries 1.8 TB/s in
/// each direction (nvidia.com/data-center/nvlink), and reductions in the switch at most double the bus bandwidth.
const HIGHEST: f64 = 4e12;

/// A bandwidth in bytes per second. A value that no hardware reaches is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Bandwidth(f64);

impl From<Bandwidth> for f64 {
    fn from(bandwidth: Bandwidth) -> Self {
        bandwidth.0
    }
}

impl<'de> Deserialize<'de> for Bandwidth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let speed = f64::deserialize(deserializer)?;
        if (0.0..=HIGHEST).contains(&speed) {
            Ok(Self(speed))
        } else {
            Err(D::Error::custom(format!("a bandwidth of {speed:e} bytes per second is not possible")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_bandwidth_is_not_accepted() {
        let read =
            |text: &str| serde_json::from_str::<Bandwidth>(text).map(f64::from).map_err(|error| error.to_string());
        assert_eq!(read("3.6e11"), Ok(3.6e11));
        assert_eq!(read("0"), Ok(0.0));
        for text in ["3.6e17", "-1.0"] {
            assert!(read(text).unwrap_err().contains("is not possible"), "{text}");
        }
    }
}
