//! Why a server cannot register beside the others, and what its operator does about it.

use bus::STREAM_SLOTS;
use db::{KeyConflict, Side};

/// All slots on the bus have a server.
pub(super) fn no_slot(streams: u16) -> String {
    let workers = streams.saturating_mul(STREAM_SLOTS);
    format!(
        "{workers} servers are on the bus already, as many as `nats.streams: {streams}` allows: set `nats.streams` to {} \
         on all of them, one after the other; or end a server",
        streams.saturating_add(1)
    )
}

/// A server would not recognize the trace ids of another one.
pub(super) fn key_conflict(conflict: &KeyConflict) -> String {
    let KeyConflict { server, key, unknown_to } = conflict;
    match unknown_to {
        Side::Present => format!(
            "the key that this server mints trace ids with (fingerprint {key}) is unknown to the server `{server}`, which would \
             take the spans of its runs for somebody else's: add the key to `ids.keys` there, not as the first, before \
             any server mints with it; or end that server"
        ),
        Side::Entering => format!(
            "the key that the server `{server}` mints trace ids with (fingerprint {key}) is not among `ids.keys` here, so that \
             the spans of its runs would be taken for somebody else's: add the key here, not as the first; or end that server"
        ),
    }
}
