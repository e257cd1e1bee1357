//! The record against a real Postgres, one database for each test.

mod events;
mod lease;
mod scratch;
mod start;
mod test_version;
mod trace;
