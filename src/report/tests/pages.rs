//! The pages that the repository ships.

use std::fs;
use std::path::Path;

use crate::judge::rules::RuleSet;
use crate::report::pages;

#[test]
fn the_pages_in_the_repository_are_these() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rules");
    let rules = RuleSet::builtin().unwrap();
    let mut wanted = vec![(folder.join("README.md"), pages::index(&rules))];
    wanted.extend(rules.iter().map(|rule| (folder.join(format!("{}.md", rule.id)), pages::rule(rule))));
    for (path, text) in &wanted {
        let shipped = fs::read_to_string(path).unwrap_or_default();
        assert!(
            shipped == *text,
            "{} is out of date: `ncclcheck rules docs --no-config docs/rules` writes it",
            path.display()
        );
    }
    let areas = fs::read_dir(&folder).unwrap().filter_map(|area| fs::read_dir(area.unwrap().path()).ok());
    for page in areas.flatten().map(|page| page.unwrap().path()) {
        assert!(wanted.iter().any(|(path, _)| *path == page), "{} belongs to no rule", page.display());
    }
}
