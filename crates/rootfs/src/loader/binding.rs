//! Symbol lookup: each reference of the objects that are relocated must find a definition in the scope of that moment
//! (glibc, `elf/dl-lookup.c`, `elf/dl-reloc.c`, `elf/dl-open.c`).
//!
//! `DT_SYMBOLIC` and protected symbols change which definition is chosen, not whether one is found: every object is in
//! its own scope.

use model::{Gap, SymbolExports, SymbolImport, escape};

use super::driver;
use super::order::relocation_order;
use super::process::{LoadedObject, Process, Requester, Stop};

/// Definitions that a lookup can find.
struct SymbolScope<'p, 'a> {
    /// The objects, at first those with the most symbols, and then those with the most lookups in front: the order decides
    /// which definition is chosen, but not whether one is found.
    exports: Vec<&'a SymbolExports>,
    objects: Vec<&'p LoadedObject<'a>>,
    /// Why the symbols of an object are unknown.
    gap: Option<Gap>,
}

impl<'a> Process<'a> {
    /// Binds the references of the objects from `first` on, which belong to the search list of the program or of a
    /// dlopen call. Returns the loader's message about the first reference without a definition.
    pub(super) fn relocate(&mut self, first: usize, search_list: &[usize], is_lazy: bool) -> Result<(), Stop> {
        let mut scope = self.scope(self.global.iter().chain(search_list).copied());
        let is_lazy = is_lazy && !self.loader.settings.bind_now;
        let mut unread = None;
        for id in relocation_order(self, first, search_list) {
            let Some(object) = self.objects.get(id) else { continue };
            // The loader relocates itself before it starts the program.
            if object.asked == Requester::Interpreter {
                continue;
            }
            match &object.elf.links {
                Ok(links) => {
                    let missing = links.imports.iter(is_lazy).find(|import| !scope.has(import));
                    if let Some(import) = missing {
                        let message = message(object, &import);
                        let gap = scope.gap.clone().or_else(|| unread.clone());
                        return Err(match gap.or_else(|| unordered(object, &message)) {
                            Some(gap) => Stop::Unknown(gap),
                            None => Stop::Fails(message),
                        });
                    }
                }
                Err(gap) => unread = unread.or_else(|| Some(gap.clone())),
            }
        }
        self.doubt = self.doubt.take().or(unread);
        Ok(())
    }

    fn scope(&self, ids: impl Iterator<Item = usize>) -> SymbolScope<'_, 'a> {
        let mut list: Vec<usize> = ids.collect();
        list.sort_unstable();
        list.dedup();
        let objects: Vec<_> = list.into_iter().filter_map(|id| self.objects.get(id)).collect();
        let gap = objects.iter().find_map(|object| object.elf.links.as_ref().err().cloned());
        let mut exports: Vec<_> =
            objects.iter().filter_map(|object| Some(&object.elf.links.as_ref().ok()?.exports)).collect();
        exports.sort_by_key(|exports| std::cmp::Reverse(exports.len()));
        SymbolScope { exports, objects, gap }
    }
}

impl SymbolScope<'_, '_> {
    fn has(&mut self, import: &SymbolImport<'_>) -> bool {
        let keys = import.keys();
        if let Some(place) = self.exports.iter().position(|exports| exports.fit(&keys)) {
            self.exports.swap(place, place / 2);
            return true;
        }
        self.objects.iter().any(|object| driver::gives(object.elf, import.name))
    }
}

/// The message of `_dl_lookup_symbol_x`.
fn message(object: &LoadedObject<'_>, import: &SymbolImport<'_>) -> String {
    let version = import.version.map(|version| format!(", version {}", version.name)).unwrap_or_default();
    format!("{}: undefined symbol: {}{version}", escape(&object.opened), escape(import.name))
}

/// The gap of a missing symbol that relocations may not refer to.
fn unordered(object: &LoadedObject<'_>, message: &str) -> Option<Gap> {
    let is_known = object.elf.links.as_ref().is_ok_and(|links| links.imports.is_relocated());
    (!is_known).then(|| Gap::new(format!("{message}, if a relocation refers to it; the relocations could not be read")))
}
