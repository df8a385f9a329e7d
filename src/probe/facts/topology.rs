//! What lies between GPUs.

use serde_json::Value as Json;

use crate::facts::Facts;
use crate::facts::key;
use crate::model::{Fact, Gap};

use super::super::recording::Recording;
use super::reading::Reading;
use super::{none_of, texts, untold};

pub(super) fn produce(recording: &Recording, facts: &mut Facts) {
    let Some((step, body)) = recording.find("topology").and_then(|step| Some((step, step.body()?))) else {
        let keys = &[key::RUN_NVLINK_PAIRS, key::RUN_PEER_REFUSED];
        return none_of(keys, &untold(recording, "topology"), facts);
    };
    let object = Json::Object(body.clone());
    let pairs: Vec<_> = Reading::new(&object).list("gpu_pairs").collect();
    // Each two GPUs once.
    let index = |name: &str| name.trim_start_matches("GPU").parse::<u32>().unwrap_or(u32::MAX);
    let bound = pairs.iter().filter_map(|pair| {
        let (from, to, links) = (pair.text("from")?, pair.text("to")?, pair.number("nvlinks")?);
        (links > 0 && index(from) < index(to)).then(|| format!("{from}-{to}: NV{links}"))
    });
    facts.insert(key::RUN_NVLINK_PAIRS, texts(step, bound.collect()));
    let (mut refused, mut gap) = (Vec::new(), None);
    for pair in &pairs {
        let name = format!("{} to {}", pair.text("from").unwrap_or("?"), pair.text("to").unwrap_or("?"));
        match pair.known("cuda_can_access") {
            Ok(Some(can)) if can.as_bool() == Some(false) => refused.push(name),
            Ok(_) => {}
            Err(why) => gap = gap.or(Some(Gap::new(format!("{name}: {}", why.why)))),
        }
    }
    let refused = gap.filter(|_| refused.is_empty()).map_or_else(|| texts(step, refused), Fact::Unknown);
    facts.insert(key::RUN_PEER_REFUSED, refused);
}
