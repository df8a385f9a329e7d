use super::*;

#[test]
fn names_nest_and_are_unique() {
    for (index, key) in key::KEYS.iter().enumerate() {
        for other in key::KEYS.iter().skip(index + 1) {
            assert_ne!(key.name, other.name);
            for (short, long) in [(key.name, other.name), (other.name, key.name)] {
                assert!(!long.starts_with(&format!("{short}.")), "{short} is a fact and the beginning of {long}");
            }
        }
    }
}

#[test]
fn every_question_is_answered_for_an_empty_image() {
    let rootfs = RootFs::fold(Vec::new(), &crate::model::Limits::default());
    let config = ImageConfig::default();
    let facts = Facts::collect(&World { rootfs: &rootfs, config: Some(&config) });
    for (name, fact) in facts.iter() {
        assert!(!matches!(fact, Fact::Unknown(_)), "{name}: {fact:?}");
    }
}
