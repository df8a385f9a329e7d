//! Facts about the connections between GPUs.

use facts::Facts;
use facts::key;
use model::{Fact, Gap};

use super::super::recording::Recording;
use super::super::wire::StepBody as _;
use super::super::wire::topology::TopologyBody;
use super::{none_of, texts, unanswered};

pub(super) fn produce(recording: &Recording, facts: &mut Facts) {
    let Some((step, body)) = recording.result::<TopologyBody>() else {
        let keys = key::definitions![RUN_NVLINK_PAIRS, RUN_PEER_REFUSED];
        return none_of(keys, &unanswered(recording, TopologyBody::STEP), facts);
    };
    let (pairs, unread) = match body.gpu_pairs.known_list() {
        Ok(pairs) => (pairs, None),
        Err(gap) => (&[][..], Some(gap)),
    };
    // Lists each pair of GPUs once.
    let index = |name: &str| name.trim_start_matches("GPU").parse::<u32>().unwrap_or(u32::MAX);
    let bound = pairs.iter().filter_map(|pair| {
        let from = pair.from.text()?;
        let to = pair.to.text()?;
        let links = pair.nvlinks.copied()?;
        (links > 0 && index(from) < index(to)).then(|| format!("{from}-{to}: NV{links}"))
    });
    let bound = unread.clone().map_or_else(|| texts(step, bound.collect()), Fact::Unknown);
    facts.insert(key::RUN_NVLINK_PAIRS, bound);
    let mut refused = Vec::new();
    let mut gap = unread;
    for pair in pairs {
        let name = format!("{} to {}", pair.from.text().unwrap_or("?"), pair.to.text().unwrap_or("?"));
        match pair.cuda_can_access.known() {
            Ok(Some(false)) => refused.push(name),
            Ok(_) => {}
            Err(why) => gap = gap.or(Some(Gap::new(format!("{name}: {}", why.why)))),
        }
    }
    let refused = gap.filter(|_| refused.is_empty()).map_or_else(|| texts(step, refused), Fact::Unknown);
    facts.insert(key::RUN_PEER_REFUSED, refused);
}
