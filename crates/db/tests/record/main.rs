//! Tests of the database crate against a real Postgres, with one database for each test.

mod access;
mod answers;
mod documents;
mod events;
mod history;
mod learned;
mod lease;
mod life;
mod migrated;
mod partitions;
mod provisional;
mod scratch;
mod servers;
mod share;
mod start;
mod test_list;
mod test_version;
mod trace;
