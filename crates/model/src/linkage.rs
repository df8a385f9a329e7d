//! Dynamic symbols as the dynamic loader binds them (glibc, `elf/dl-lookup.c`).
//!
//! A definition is kept as a few keys, each the hash of one form in which a reference may ask for it. A reference is kept
//! by name, which the loader's message needs.

use serde::{Deserialize, Serialize};

/// References and definitions of one ELF file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolLinks {
    /// Symbols that other files must define.
    pub imports: SymbolImports,
    /// Symbols that other files can use.
    pub exports: SymbolExports,
}

impl SymbolLinks {
    /// No reference and no definition.
    pub const fn none() -> Self {
        let imports = SymbolImports {
            names: Vec::new(),
            requires: Vec::new(),
            versions: Vec::new(),
            eager: 0,
            is_relocated: true,
        };
        Self { imports, exports: SymbolExports(Vec::new()) }
    }
}

/// Undefined symbols without which the loader rejects the file, in the order of its relocations. Weak symbols, and
/// symbols that no relocation refers to, are not among them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolImports {
    /// Linker names, each followed by NUL.
    #[serde(with = "serde_bytes")]
    names: Vec<u8>,
    /// For each name, one more than the index of its version in `versions`, or zero. Empty if no name has a version.
    requires: Vec<u16>,
    versions: Vec<RequiredVersion>,
    /// Number of leading names that are bound when the file is loaded, even with `RTLD_LAZY`.
    eager: usize,
    /// False if the relocations could not be read: each undefined symbol is listed, in the order of the symbol table.
    is_relocated: bool,
}

/// Version of a reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequiredVersion {
    /// Name, such as `GLIBC_2.34`.
    pub name: String,
    /// True if only a definition of exactly this version fits (`vna_other` with bit 15).
    pub is_exact: bool,
}

/// One reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolImport<'a> {
    /// Linker name.
    pub name: &'a [u8],
    /// Required version; `None` if any default version fits.
    pub version: Option<&'a RequiredVersion>,
}

impl SymbolImports {
    /// Creates the list. `eager` is the number of leading references that are bound at once; `is_relocated` is false if
    /// the relocations are unknown.
    pub fn new<'a>(list: impl IntoIterator<Item = SymbolImport<'a>>, eager: usize, is_relocated: bool) -> Self {
        let mut names = Vec::new();
        let mut requires = Vec::new();
        let mut versions = Vec::new();
        for import in list {
            names.extend_from_slice(import.name);
            names.push(0);
            requires.push(import.version.map_or(0, |version| position(&mut versions, version)));
        }
        if versions.is_empty() {
            requires.clear();
        }
        names.shrink_to_fit();
        requires.shrink_to_fit();
        Self { names, requires, versions, eager, is_relocated }
    }

    /// The references in order: all of them, or those that are bound despite `RTLD_LAZY`.
    pub fn iter(&self, is_lazy: bool) -> impl Iterator<Item = SymbolImport<'_>> {
        let most = if is_lazy { self.eager } else { usize::MAX };
        let names = self.names.split(|&byte| byte == 0).filter(|name| !name.is_empty()).take(most);
        names.enumerate().map(|(index, name)| {
            let version = self.requires.get(index).and_then(|&version| usize::from(version).checked_sub(1));
            SymbolImport { name, version: version.and_then(|version| self.versions.get(version)) }
        })
    }

    /// Bytes of the names.
    pub const fn bytes(&self) -> usize {
        self.names.len()
    }

    /// Returns true if the relocations decided which symbols are listed, and in which order.
    pub const fn is_relocated(&self) -> bool {
        self.is_relocated
    }
}

/// One more than the index of a version, which is added if it is new. Zero, no version, past the last possible index.
fn position(versions: &mut Vec<RequiredVersion>, wanted: &RequiredVersion) -> u16 {
    let index = versions.iter().position(|known| known == wanted).unwrap_or_else(|| {
        versions.push(wanted.clone());
        versions.len() - 1
    });
    u16::try_from(index + 1).unwrap_or(0)
}

/// Size of a key, in bytes. A file has at most some 10^5 of them, so that one unrelated key in 10^9 is mistaken for one.
const KEY: usize = 6;

/// Defined symbols, as sorted keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolExports(#[serde(with = "serde_bytes")] Vec<u8>);

/// Definition of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolVersion<'a> {
    /// No version, or the base version: any reference fits.
    Base,
    /// A base version that is hidden: only references without version fit.
    HiddenBase,
    /// The default version of the symbol, or the file's first version: references without version fit too.
    Default(&'a [u8]),
    /// Another version: only references of this version fit.
    Hidden(&'a [u8]),
}

impl SymbolExports {
    /// Creates the keys of definitions.
    pub fn new<'a>(definitions: impl IntoIterator<Item = (&'a [u8], SymbolVersion<'a>)>) -> Self {
        let mut keys: Vec<[u8; KEY]> = Vec::new();
        for (name, version) in definitions {
            match version {
                SymbolVersion::Base => keys.push(key(name, FORM_BASE)),
                SymbolVersion::HiddenBase => keys.push(key(name, FORM_DEFAULT)),
                SymbolVersion::Default(version) => {
                    keys.extend([key(name, FORM_DEFAULT), key(name, hash(version))]);
                }
                SymbolVersion::Hidden(version) => keys.push(key(name, hash(version))),
            }
        }
        keys.sort_unstable();
        keys.dedup();
        Self(keys.as_flattened().to_vec())
    }

    /// Number of keys.
    pub const fn len(&self) -> usize {
        self.0.len() / KEY
    }

    /// Returns true if the file defines nothing.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a definition fits this reference.
    pub fn fit(&self, wanted: &SymbolKeys) -> bool {
        wanted.base.is_some_and(|base| self.has(base)) || self.has(wanted.own)
    }

    fn has(&self, key: [u8; KEY]) -> bool {
        let keys = self.0.as_chunks::<KEY>().0;
        // Hashes are evenly spread, so that a key is most often less than 1.4 √n from its share of the list: three standard
        // deviations. The steps of a search in the whole list would be far apart in memory.
        let [first, second, ..] = key;
        let share = keys.len().saturating_mul(u16::from_be_bytes([first, second]).into()) >> 16;
        let reach = 2 << ((keys.len() | 1).ilog2() / 2);
        let near = keys.get(share.saturating_sub(reach)..(share + reach).min(keys.len())).unwrap_or(keys);
        match near.binary_search(&key) {
            Ok(_) => true,
            Err(place) if 0 < place && place < near.len() => false,
            Err(_) => keys.binary_search(&key).is_ok(),
        }
    }
}

/// The keys under which a definition for one reference may be found.
#[derive(Clone, Copy, Debug)]
pub struct SymbolKeys {
    base: Option<[u8; KEY]>,
    own: [u8; KEY],
}

impl SymbolImport<'_> {
    /// The keys of this reference.
    pub fn keys(&self) -> SymbolKeys {
        match self.version {
            None => SymbolKeys { base: Some(key(self.name, FORM_BASE)), own: key(self.name, FORM_DEFAULT) },
            Some(version) => SymbolKeys {
                base: (!version.is_exact).then(|| key(self.name, FORM_BASE)),
                own: key(self.name, hash(version.name.as_bytes())),
            },
        }
    }
}

/// Forms beside the hash of a version.
const FORM_BASE: u64 = 1;
const FORM_DEFAULT: u64 = 2;

fn key(name: &[u8], form: u64) -> [u8; KEY] {
    let [key @ .., _, _] = fold(hash(name) ^ 0x9e37_79b9_7f4a_7c15, form ^ 0xc2b2_ae3d_27d4_eb4f).to_be_bytes();
    key
}

/// Hash of a name: eight bytes at a time, in an order that is the same on every machine.
fn hash(name: &[u8]) -> u64 {
    let (words, rest) = name.as_chunks::<8>();
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let words = words.iter().copied().chain([last]).map(u64::from_le_bytes);
    words.fold(name.len() as u64, |hash, word| fold(hash ^ 0xa076_1d64_78bd_642f, word ^ 0xe703_7ed1_a0b4_28db))
}

/// Product of two words, folded to one.
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
    let low = product as u64;
    let high = (product >> 64) as u64;
    low ^ high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted<'a>(name: &'a str, version: Option<&'a RequiredVersion>) -> SymbolImport<'a> {
        SymbolImport { name: name.as_bytes(), version }
    }

    #[test]
    fn a_reference_fits_as_glibc_matches_it() {
        use SymbolVersion::{Base, Default, Hidden, HiddenBase};
        let [own, other] = ["V1", "V2"].map(|name| RequiredVersion { name: name.to_owned(), is_exact: false });
        let exact = RequiredVersion { is_exact: true, ..own.clone() };
        for (definition, fits) in [
            (Base, [true, true, true, false]),
            (HiddenBase, [true, false, false, false]),
            (Default(b"V1"), [true, true, false, true]),
            (Hidden(b"V1"), [false, true, false, true]),
        ] {
            let exports = SymbolExports::new([(&b"symbol"[..], definition)]);
            let references = [None, Some(&own), Some(&other), Some(&exact)];
            let answers = references.map(|version| exports.fit(&wanted("symbol", version).keys()));
            assert_eq!(answers, fits, "{definition:?}");
            assert!(!exports.fit(&wanted("symbol2", None).keys()));
        }
    }

    #[test]
    fn references_keep_their_order_and_versions() {
        let [one, two] = ["V1", "V2"].map(|name| RequiredVersion { name: name.to_owned(), is_exact: false });
        let list = [wanted("b", Some(&two)), wanted("a", None), wanted("c", Some(&one)), wanted("d", Some(&two))];
        let imports = SymbolImports::new(list, 2, true);
        assert_eq!(imports.iter(false).collect::<Vec<_>>(), list);
        assert_eq!(imports.iter(true).collect::<Vec<_>>(), list[..2]);
        let plain = SymbolImports::new([wanted("a", None)], 1, true);
        assert!(plain.requires.is_empty());
    }

    #[test]
    fn keys_are_found_where_they_are_not_spread() {
        let keys: Vec<[u8; KEY]> = (0..5000_u16).map(u16::to_be_bytes).map(|[a, b]| [9, 0, a, b, 0, 0]).collect();
        let exports = SymbolExports(keys.as_flattened().to_vec());
        assert!(keys.iter().all(|key| exports.has(*key)));
        assert!(![[0; KEY], [9; KEY], [9, 0, 1, 1, 0, 1], [255; KEY]].iter().any(|key| exports.has(*key)));
        assert!(!SymbolExports(Vec::new()).has([0; KEY]));
    }

    #[test]
    fn names_that_differ_have_different_keys() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut names: Vec<Vec<u8>> = (0..200_000_u32).map(|number| format!("_ZN2at{number}E").into_bytes()).collect();
        names.extend((0..64).map(|length| vec![0; length]));
        names
            .extend(std::iter::repeat_with(|| std::iter::repeat_with(|| random.u8(..)).take(9).collect()).take(50_000));
        names.sort();
        names.dedup();
        let exports = SymbolExports::new(names.iter().map(|name| (name.as_slice(), SymbolVersion::Base)));
        assert_eq!(exports.len(), names.len());
        assert!(names.iter().all(|name| exports.has(key(name, FORM_BASE)) && !exports.has(key(name, FORM_DEFAULT))));
    }
}
