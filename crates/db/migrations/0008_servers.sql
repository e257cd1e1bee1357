-- The servers on this database. Each has a row, which it renews by heartbeats; every time is by this database's clock, since
-- those of the servers may differ. Where another server received spans during a run, absence proves nothing in it: so a row
-- is there before its server receives anything, and stays for a while after its end.
create table servers (
    -- Whose journal of spans it is, and on which machine: a server that comes back has the row that it had.
    id uuid primary key,
    -- The process. Another one under the same id is its successor, or has a copy of its data directory.
    process uuid not null,
    name text not null,
    -- What the server does: `api`, `ingest`, `worker`.
    roles text[] not null,
    version text not null,
    -- Fingerprints of the keys of trace ids: of the one that it mints with, and of all that it knows.
    minting_key text not null,
    known_keys text[] not null,
    started_at timestamptz not null,
    heartbeat_at timestamptz not null,
    -- Until when the server may have received spans: two heartbeats after the last one, or its orderly end.
    counts_until timestamptz not null
);
