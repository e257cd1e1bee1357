//! Journals and their directories: shared, left behind, damaged, deleted.

mod endings;
mod folders;
mod left_behind;
mod texts;
