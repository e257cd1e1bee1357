//! The benchmarks, and the real parts that they run on.
//!
//! [`parts`] starts a real database, Collector, server and instrumented target for one test or benchmark, and stops them with it.
//! Deliberately absent: mocks, and any figure that was not measured in the run that prints it.

pub mod chaos;
pub mod columns;
pub mod compat;
pub mod decode;
pub mod dogfood;
pub mod ingest;
pub mod kill;
pub mod lang;
pub mod layout;
pub mod leasing;
pub mod page;
pub mod parts;
pub mod plays;
pub mod replicas;
pub mod run;
pub mod server;
pub mod settle;
pub mod shared;
pub mod stores;
pub mod table;
pub mod telemetry;
pub mod thread;
pub mod upgrade;
