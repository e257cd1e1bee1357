-- The record: tests with their versions, runs with their events and traces. Every row that belongs to somebody
-- names its project. What happened when is told by the program, in nanoseconds, exactly; only leases go by the
-- database's clock, which is the one clock that all workers share.

-- The key under which this deployment mints trace ids, made at the first start. It belongs to no project.
create table id_key (
    one boolean primary key default true check (one),
    key bytea not null check (octet_length(key) = 16)
);

-- The current version of a test, and the file it was last applied from, as the user named it.
create table tests (
    project text not null,
    id text not null,
    version integer not null,
    file text not null,
    primary key (project, id)
);

-- A version never changes and is never deleted: runs point at it. The name is part of the document.
create table test_versions (
    project text not null,
    test_id text not null,
    version integer not null,
    name text not null,
    document text not null,
    primary key (project, test_id, version),
    foreign key (project, test_id) references tests (project, id)
);

-- Runs, events and traces are partitioned by the run's id, a UUIDv7 and thus a time, so that old ones can be
-- dropped by the partition. For the same reason none of them references another; the statements that write
-- events and traces take the run's id from the run's row.
--
-- Answers, outcomes and events are `json` and not `jsonb`: they are only ever read whole, and `jsonb` refuses the
-- NUL character, which a system may well answer. They are also kept letter for letter, so that a repeated write
-- is known by its text. An attempt and an answer name the epoch that wrote them, for the same end; an outcome
-- need not, as no epoch comes after it.
create table runs (
    id uuid primary key,
    project text not null,
    test_id text not null,
    test_version integer not null,
    accepted_at_ns bigint not null,
    traceparent text,
    epoch bigint not null default 0,
    lease_until timestamptz,
    worker text,
    trace_id bytea check (octet_length(trace_id) = 16),
    span_id bytea check (octet_length(span_id) = 8),
    attempted_at_ns bigint,
    attempted_epoch bigint,
    answer json,
    answered_epoch bigint,
    verdict text check (verdict in ('passed', 'failed', 'inconclusive')),
    outcome json,
    events_last bigint not null,
    state text not null generated always as (
        case when verdict is not null then 'ended' when epoch > 0 then 'running' else 'queued' end
    ) stored,
    check (num_nulls(trace_id, span_id, attempted_at_ns, attempted_epoch) in (0, 4)),
    check ((answer is null) = (answered_epoch is null)),
    check (answer is null or attempted_at_ns is not null),
    check ((verdict is null) = (outcome is null)),
    foreign key (project, test_id, test_version) references test_versions (project, test_id, version)
) partition by range (id);

create table runs_default partition of runs default;

-- What a worker looks through for a run to take: few rows, however long the history.
create index runs_open on runs (id) where verdict is null;

create index runs_trace_id on runs (trace_id);

create table events (
    project text not null,
    run_id uuid not null,
    n bigint not null,
    event json not null,
    primary key (run_id, n)
) partition by range (run_id);

create table events_default partition of events default;

create table traces (
    project text not null,
    run_id uuid primary key,
    spans bigint not null,
    otlp_zstd bytea not null
) partition by range (run_id);

create table traces_default partition of traces default;

-- The bytes are compressed already; Postgres need not try again.
alter table traces_default alter column otlp_zstd set storage external;
