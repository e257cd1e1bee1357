-- Servers that share spans over one bus. A worker has a slot on it: the trace ids that it mints carry the slot, so that every
-- server knows from an id where its spans go.
alter table servers
    -- Which bus it is on; none for a server that shares its spans with no other.
    add column bus text,
    add column slot integer check (slot between 0 and 65535);

-- What identified the storage of the bus when the trigger was fired: a server that resumes the run knows by it whether the spans
-- since then are all there.
alter table open_runs add column bus_state text;
