//! What the start of one interpreter may cost. Each line, statement and lookup of its startup code is a step, and so is
//! what it makes beyond a usual one.
//!
//! A `.pth` file can add a folder twice whose `.pth` file does so in turn, and a program can double a string in each line.

use std::cell::{Cell, RefCell};

use model::{Gap, OverLimit};

/// Bytes of text that cost a step.
const BYTES: usize = 256;

/// The steps of one start.
#[derive(Debug)]
pub(super) struct StartBudget {
    limit: usize,
    spent: Cell<usize>,
    /// Why the start is not followed for another reason.
    refusal: RefCell<Option<Gap>>,
}

impl StartBudget {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, spent: Cell::new(0), refusal: RefCell::default() }
    }

    /// Pays for steps; false once they are spent.
    pub(super) fn spend(&self, steps: usize) -> bool {
        self.spent.set(self.spent.get().saturating_add(steps));
        self.gap().is_none()
    }

    /// Pays for a text that is read or made: a step, and more if it is long.
    pub(super) fn spend_on_text(&self, bytes: usize) -> bool {
        self.spend(1 + bytes / BYTES)
    }

    /// Ends the start.
    pub(super) fn refuse(&self, why: String) {
        self.refusal.borrow_mut().get_or_insert(Gap::new(why));
    }

    /// Why the start was not followed to its end.
    pub(super) fn gap(&self) -> Option<Gap> {
        let spent = self.spent.get();
        if spent <= self.limit {
            return self.refusal.borrow().clone();
        }
        let what = format!("the startup code of this Python takes at least {spent} steps");
        Some(Gap::new(OverLimit::new(what, "python_steps", self.limit as u64).to_string()))
    }
}
