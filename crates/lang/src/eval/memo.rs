//! Memoizes results for the nodes of a plan during the evaluation, and charges them to the budget.
//!
//! Each statement is charged once for the results that it needs, also if another statement computed them, so that it costs as
//! much as it costs alone. A result that the budget cut short is not memoized, nor is one for a node without an id.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use super::{
    aggregate::Constant, bits::Bits, doubt::Selection, future::Evaluation,
    relation::RelationResult, select::Matches, summary::NoValue,
};
use crate::{
    budget,
    syntax::ast::{At, NodeId},
};

/// The memoized results, by node.
pub(super) type Memo<T> = RefCell<HashMap<NodeId, MemoEntry<T>>>;

/// The memoized result for a node.
#[derive(Debug)]
pub(super) struct MemoEntry<T> {
    made: Rc<T>,
    /// The budget steps of the computation.
    steps: u64,
    /// The statement that was charged for it last.
    payer: Cell<u32>,
}

/// A value that can be memoized, with its size in bytes.
pub(super) trait Remember {
    fn bytes(&self) -> u64;
}

/// The memory use of all memoized results.
#[derive(Debug, Default)]
pub(super) struct MemoryUse(Cell<u64>);

impl MemoryUse {
    pub(super) fn add(&self, bytes: u64) {
        budget::hold(bytes);
        self.0.set(self.0.get() + bytes);
    }

    pub(super) fn release(&self) {
        budget::release(self.0.take());
    }

    /// Returns the memoized result for a node, or computes it.
    pub(super) fn remember<T: Remember>(
        &self,
        memo: &Memo<T>,
        at: &At,
        make: impl FnOnce() -> T,
    ) -> Rc<T> {
        let Some(id) = at.id() else { return Rc::new(make()) };
        let statement = budget::current_statement();
        if let Some(known) = memo.borrow().get(&id) {
            if known.payer.replace(statement) != statement {
                budget::charge_again(known.steps);
            }
            return Rc::clone(&known.made);
        }
        let before = budget::charged();
        let made = Rc::new(make());
        if budget::is_over() {
            return made;
        }
        self.add(made.bytes());
        let steps = budget::charged().saturating_sub(before);
        let known = MemoEntry { made: Rc::clone(&made), steps, payer: Cell::new(statement) };
        memo.borrow_mut().insert(id, known);
        made
    }
}

impl Drop for MemoryUse {
    fn drop(&mut self) {
        self.release();
    }
}

impl Remember for Matches {
    fn bytes(&self) -> u64 {
        // Includes the ranks, which are computed on demand.
        2 * self.bits.bytes()
    }
}

impl Remember for Bits {
    fn bytes(&self) -> u64 {
        Bits::bytes(self)
    }
}

impl Remember for [Bits; 2] {
    fn bytes(&self) -> u64 {
        self.iter().map(Bits::bytes).sum()
    }
}

impl Remember for Vec<u32> {
    fn bytes(&self) -> u64 {
        4 * self.len() as u64
    }
}

impl Remember for Result<Rc<Constant<'_>>, NoValue> {
    fn bytes(&self) -> u64 {
        self.as_ref().map_or(0, |constant| constant.bytes())
    }
}

impl Remember for Evaluation {
    fn bytes(&self) -> u64 {
        size_of::<Self>() as u64
    }
}

impl Remember for Selection {
    fn bytes(&self) -> u64 {
        size_of::<Self>() as u64 + 4 * self.sure.len() as u64
    }
}

impl Remember for RelationResult {
    fn bytes(&self) -> u64 {
        size_of::<Self>() as u64
    }
}
