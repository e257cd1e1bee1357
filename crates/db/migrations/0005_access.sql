-- Who may ask, and who changed what. Neither belongs to a project: a token may be good for several, and the audit log
-- is about the deployment.

-- A token is 256 random bits and is not kept: its SHA-256 is, which finds it and gives nothing away. A session is the
-- token in the cookie of a person who has logged in. One that has ended stays, since the audit log names it.
create table tokens (
    id uuid primary key,
    kind text not null check (kind in ('token', 'session')),
    name text not null,
    hash bytea not null unique check (octet_length(hash) = 32),
    role text not null check (role in ('viewer', 'editor', 'admin')),
    -- The projects that it is good for; null for all.
    projects text[],
    made_at_ns bigint not null,
    made_by text not null,
    expires_at_ns bigint not null,
    revoked_at_ns bigint
);

create index tokens_kind on tokens (kind, id);

-- A row is written before the change, so that nothing changes without one; its status comes after. A row without a
-- status is of a change that may or may not have happened.
create table audit (
    n bigint generated always as identity primary key,
    at_ns bigint not null,
    who text not null,
    token uuid,
    method text not null,
    route text not null,
    path text not null,
    project text,
    status integer
);

create index audit_at on audit (at_ns);
