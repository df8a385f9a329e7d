//! Budgets for the names of one file. A string table is small, but each entry of another table can name the same string
//! again.

use std::cell::Cell;

use model::{Limits, OverLimit};

/// The budgets of one file.
pub(super) struct NameBudgets {
    /// For names that the loader needs: libraries, search paths and versions.
    pub(super) of_loader: NameBudget,
    /// For the names of dynamic symbols.
    pub(super) of_symbols: NameBudget,
}

/// Bytes of names, each counted as often as it is read.
pub(super) struct NameBudget {
    used: Cell<u64>,
    what: &'static str,
    limit: (&'static str, u64),
}

impl NameBudgets {
    pub(super) fn new(limits: &Limits) -> Self {
        let budget = |what, limit| NameBudget { used: Cell::new(0), what, limit };
        Self {
            of_loader: budget("names of libraries, search paths and versions", ("elf_strings", limits.elf_strings)),
            of_symbols: budget("names of symbols", ("elf_names", limits.elf_names)),
        }
    }
}

impl NameBudget {
    /// Counts a name of this length and its end.
    pub(super) fn charge(&self, length: usize) -> Result<(), String> {
        let used = self.used.get().saturating_add(length as u64).saturating_add(1);
        self.used.set(used);
        let (name, limit) = self.limit;
        if used > limit {
            return Err(OverLimit::new(format!("{} of {used} bytes", self.what), name, limit).to_string());
        }
        Ok(())
    }
}
