//! A type's name identifies the type: no two types of a crate share one, unless each is visible in a single file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

use super::imports::{is_group, source_files, test_item};

/// The definition of a type.
struct Definition {
    name: String,
    /// True if only its file can name it.
    is_private: bool,
}

/// The types that a text defines outside functions and tests.
fn definitions(text: &str) -> Vec<Definition> {
    let mut definitions = Vec::new();
    let tokens: TokenStream = text.parse().unwrap();
    let has_children = walk(tokens, &mut definitions);
    // A private type is visible in the modules below its own.
    for definition in &mut definitions {
        definition.is_private &= !has_children;
    }
    definitions
}

/// Collects the types in some tokens. Returns true if they declare a module in another file.
fn walk(tokens: TokenStream, definitions: &mut Vec<Definition>) -> bool {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    let mut is_public = false;
    let mut has_children = false;
    while at < tokens.len() {
        let rest = &tokens[at..];
        if let Some(length) = test_item(rest) {
            at += length;
            continue;
        }
        match rest {
            [TokenTree::Ident(word), TokenTree::Ident(name), ..]
                if ["struct", "enum", "trait", "union"].iter().any(|kind| word == kind) =>
            {
                definitions.push(Definition { name: name.to_string(), is_private: !is_public });
            }
            [TokenTree::Ident(word), TokenTree::Ident(_), TokenTree::Punct(end), ..] if *word == "mod" => {
                has_children |= end.as_char() == ';';
            }
            [TokenTree::Ident(word), TokenTree::Ident(_), body @ TokenTree::Group(group), ..]
                if *word == "mod" && is_group(Some(body)) =>
            {
                has_children |= walk(group.stream(), definitions);
            }
            _ => {}
        }
        is_public = match &rest[0] {
            TokenTree::Ident(word) => *word == "pub",
            TokenTree::Group(_) => is_public,
            _ => false,
        };
        at += 1;
    }
    has_children
}

#[test]
fn types_are_found_with_their_visibility() {
    let found = |text: &str| -> Vec<(String, bool)> {
        definitions(text).into_iter().map(|definition| (definition.name, definition.is_private)).collect()
    };
    let text = "
        pub struct A; pub(crate) enum B { X } struct C(u8);
        fn f() { struct Local; }
        #[cfg(test)]
        mod tests { struct D; }
        mod inner { trait E {} }";
    let expected = [("A", false), ("B", false), ("C", true), ("E", true)];
    assert_eq!(found(text), expected.map(|(name, is_private)| (name.to_owned(), is_private)));
    assert_eq!(found("struct A; mod child;"), [("A".to_owned(), false)]);
}

#[test]
fn no_two_types_of_a_crate_share_a_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (source, least) in [("src", 500), ("crates/unpack/src", 20), ("crates/emulate/src", 20)] {
        let mut places: BTreeMap<String, Vec<(String, bool)>> = BTreeMap::new();
        for (file, path) in source_files(&root.join(source)) {
            for definition in definitions(&fs::read_to_string(path).unwrap()) {
                places.entry(definition.name).or_default().push((file.clone(), definition.is_private));
            }
        }
        assert!(places.len() > least, "only {} types were found in {source}", places.len());
        for (name, places) in places {
            let is_shared = places.len() > 1 && places.iter().any(|(_, is_private)| !is_private);
            assert!(
                !is_shared,
                "{source}: {name} is defined in {places:?}, and at least one is visible outside its file"
            );
        }
    }
}
