//! The server and its database: its row among the other servers, the documents of its configuration, and maintenance.

pub(crate) mod identity;
pub(crate) mod maintenance;
pub(crate) mod peers;
pub(crate) mod provision;
