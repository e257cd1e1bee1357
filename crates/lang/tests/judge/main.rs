//! Tests of judging: from evidence to verdicts.

mod case;
mod evidence;
mod golden;
mod lacks;
mod monotone;
mod random;
mod selection;
mod unseen;
