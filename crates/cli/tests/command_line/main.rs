//! The command line as a contract: every command for a server in every situation, where values come from, and how fast help is.
//!
//! Deliberately absent: what the commands do, which tests of their own show.

mod interrupted;
mod pipes;
mod precedence;
mod schema;
mod servers;
mod speed;
mod stage;
mod version;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
