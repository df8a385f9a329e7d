//! Producers of facts: what each produces and needs, and the resulting order.

use crate::model::Fact;

use super::key::{Definition, Key};
use super::map_entries::MapEntries;
use super::value::FactType;
use super::{Context, Facts};

/// The code for one area of facts.
pub(super) struct Producer {
    /// Name of the area.
    pub(super) name: &'static str,
    /// Every fact that it produces. Each fact has exactly one producer.
    pub(super) produces: &'static [&'static Definition],
    /// The facts of other producers that it reads.
    pub(super) needs: &'static [&'static Definition],
    /// Produces the facts.
    pub(super) run: fn(&Context<'_>, &mut Draft<'_>),
}

/// Orders producers by their needs. If some form a cycle, returns the names of those without an order.
pub(super) fn ordered<'p>(producers: &[&'p Producer]) -> Result<Vec<&'p Producer>, Vec<&'static str>> {
    let mut waiting = producers.to_vec();
    let mut ordered = Vec::new();
    while !waiting.is_empty() {
        let is_pending = |need: &&Definition| waiting.iter().any(|producer| producer.produces.contains(need));
        let Some(next) = waiting.iter().position(|producer| !producer.needs.iter().any(is_pending)) else {
            return Err(waiting.iter().map(|producer| producer.name).collect());
        };
        ordered.push(waiting.remove(next));
    }
    Ok(ordered)
}

/// A producer's view of the facts: it reads its own facts and those that it needs, and inserts each of its own once.
/// Debug builds panic on anything else.
pub(super) struct Draft<'f> {
    facts: &'f mut Facts,
    producer: &'static Producer,
}

impl<'f> Draft<'f> {
    pub(super) const fn new(facts: &'f mut Facts, producer: &'static Producer) -> Self {
        Self { facts, producer }
    }

    /// A fact.
    pub(super) fn get<T>(&self, key: Key<T>) -> &Fact<T> {
        self.assert_may_read(&key);
        self.facts.get(key)
    }

    /// A fact in the form that rules and JSON use.
    pub(super) fn view(&self, key: &Definition) -> &Fact {
        self.assert_may_read(key);
        self.facts.view(key)
    }

    /// Inserts a fact.
    pub(super) fn insert<T: FactType>(&mut self, key: Key<T>, fact: Fact<T>) {
        self.assert_may_insert(&key);
        self.facts.insert(key, fact);
    }

    /// Inserts a map of which some entries are unknown.
    pub(super) fn insert_entries(&mut self, key: &'static Definition, entries: MapEntries) {
        self.assert_may_insert(key);
        self.facts.insert_entries(key, entries);
    }

    /// Marks a fact as absent.
    pub(super) fn insert_absent(&mut self, key: &'static Definition) {
        self.assert_may_insert(key);
        self.facts.insert_value(key, Fact::Absent);
    }

    fn assert_may_read(&self, key: &Definition) {
        let Producer { name, produces, needs, .. } = self.producer;
        debug_assert!(
            needs.contains(&key) || produces.contains(&key),
            "the producer {name} reads {} and does not declare that it needs it",
            key.name
        );
    }

    fn assert_may_insert(&self, key: &Definition) {
        let Producer { name, produces, .. } = self.producer;
        debug_assert!(
            produces.contains(&key),
            "the producer {name} inserts {} and does not declare that it produces it",
            key.name
        );
        debug_assert!(self.facts.is_owed(key), "the producer {name} inserts {} twice", key.name);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::facts::PRODUCERS;
    use crate::facts::key::{self, KEYS, definitions};

    fn names(producers: &[&Producer]) -> Vec<&'static str> {
        producers.iter().map(|producer| producer.name).collect()
    }

    const fn producer(
        name: &'static str,
        produces: &'static [&'static Definition],
        needs: &'static [&'static Definition],
    ) -> Producer {
        Producer { name, produces, needs, run: |_, _| {} }
    }

    #[test]
    fn every_fact_of_an_image_has_one_producer() {
        let mut produced = BTreeSet::new();
        for key in PRODUCERS.iter().flat_map(|producer| producer.produces) {
            assert!(produced.insert(key.name), "{} has two producers", key.name);
        }
        let known: BTreeSet<_> = KEYS.iter().filter(|key| !key.is_of_run()).map(|key| key.name).collect();
        assert_eq!(produced, known);
    }

    #[test]
    fn every_need_is_a_fact_of_another_producer() {
        for producer in PRODUCERS {
            for need in producer.needs {
                let others = PRODUCERS.iter().filter(|other| other.name != producer.name);
                let is_produced = others.into_iter().any(|other| other.produces.contains(need));
                assert!(is_produced, "{} needs {}, which no other produces", producer.name, need.name);
            }
        }
    }

    #[test]
    fn producers_come_behind_those_that_they_need() {
        let order = names(&ordered(PRODUCERS).unwrap());
        let place = |name| order.iter().position(|other| *other == name).unwrap();
        assert!(place("torch") < place("nccl") && place("nccl") < place("environment"), "{order:?}");
        assert_eq!(order.len(), PRODUCERS.len());

        let first = producer("first", definitions![IMAGE_OS], &[]);
        let second = producer("second", definitions![IMAGE_USER], definitions![IMAGE_OS]);
        let third = producer("third", definitions![IMAGE_LABELS], definitions![IMAGE_OS, IMAGE_USER]);
        assert_eq!(names(&ordered(&[&third, &second, &first]).unwrap()), ["first", "second", "third"]);
    }

    #[test]
    fn a_cycle_is_named() {
        let first = producer("first", definitions![IMAGE_OS], definitions![IMAGE_USER]);
        let second = producer("second", definitions![IMAGE_USER], definitions![IMAGE_OS]);
        let third = producer("third", definitions![IMAGE_LABELS], &[]);
        let Err(circle) = ordered(&[&first, &second, &third]) else { panic!("a cycle has no order") };
        assert_eq!(circle, ["first", "second"]);
    }

    static CARELESS: Producer = producer("careless", definitions![IMAGE_OS], definitions![IMAGE_USER]);

    /// Facts that are owed by the producer above.
    fn owing() -> Facts {
        let mut facts = Facts::default();
        facts.owe(CARELESS.produces.iter().copied());
        facts
    }

    #[test]
    #[should_panic(expected = "careless reads torch.path and does not declare")]
    fn a_need_that_is_not_declared_is_a_defect() {
        Draft::new(&mut owing(), &CARELESS).get(key::TORCH_PATH);
    }

    #[test]
    #[should_panic(expected = "careless inserts torch.path and does not declare")]
    fn a_fact_that_is_not_declared_is_a_defect() {
        Draft::new(&mut owing(), &CARELESS).insert(key::TORCH_PATH, Fact::Absent);
    }

    #[test]
    #[should_panic(expected = "careless inserts image.os twice")]
    fn a_fact_that_is_inserted_twice_is_a_defect() {
        let mut facts = owing();
        let mut draft = Draft::new(&mut facts, &CARELESS);
        draft.insert(key::IMAGE_OS, Fact::Absent);
        draft.insert(key::IMAGE_OS, Fact::Absent);
    }

    #[test]
    #[should_panic(expected = "image.os is read before it is produced")]
    fn a_fact_that_is_read_before_it_is_produced_is_a_defect() {
        owing().get(key::IMAGE_OS);
    }

    #[test]
    fn a_fact_that_no_producer_inserted_is_unknown_and_not_absent() {
        let mut facts = owing();
        facts.settle();
        let owed: Vec<_> = facts.iter().collect();
        assert_eq!(owed, [("image.os", &Fact::unknown("not determined"))]);
    }
}
