//! Triggers and the receiver: how a run interacts with the system under test.
//!
//! [`trigger`] fires a resolved request and returns the response. [`receiver`] receives OTLP from the system and hands the
//! spans of wanted traces to a [`receiver::Sink`], of which [`inbox`] is the one for a run without a server. [`arrivals`]
//! delivers them to a run, whatever their source is. [`connections`] limits a listener, [`greeting`] detects the
//! protocol of a connection, [`shares`] limits the permits of one
//! owner, and [`priority`] lowers the priority of long computations. [`store`] polls trace stores.
//!
//! Deliberately absent: the test language, the definition of a run, and SQL.

pub mod arrivals;
pub mod connections;
pub mod greeting;
pub mod inbox;
pub mod priority;
pub mod receiver;
pub mod shares;
pub mod store;
pub mod trigger;
mod trust;

pub use arrivals::{AnswerGap, Arrival, Arrivals};
pub use otlp::{AppendError, Batch, append, only_ids, split};
