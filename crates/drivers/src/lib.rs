//! Triggers and stores: how a run touches the system under test.
//!
//! [`trigger`] fires a resolved request and brings back what was answered. [`receiver`] takes OTLP from the system and
//! hands the spans of wanted traces to a [`receiver::Sink`], of which [`inbox`] is the one for a run without a server.
//! [`arrivals`] is how a run gets them, wherever they came from. [`connections`] limits what
//! a listener serves, [`shares`] what one owner has of anything, and [`priority`] is for what takes long.
//!
//! Deliberately absent: the test language, what a run is, SQL, and stores that must be asked.

pub mod arrivals;
pub mod connections;
pub mod inbox;
pub mod priority;
pub mod receiver;
pub mod shares;
pub mod trigger;

pub use arrivals::{Arrival, Arrivals};
pub use otlp::{AppendError, Batch, append, split};
