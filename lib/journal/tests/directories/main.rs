//! Journals and their directories: shared, left behind, damaged, taken away.

mod endings;
mod folders;
mod left_behind;
mod texts;
