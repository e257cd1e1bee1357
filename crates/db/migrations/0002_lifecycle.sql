-- The life of runs: stopped, bounded in time, started once by a key, shared fairly, overtaken; what they have learned;
-- and suites of them.

-- The host that a version of a test calls, where its document says so without a variable; empty where it does not.
alter table test_versions add column host text not null default '';

-- A stop is asked for by anyone and seen by the owner. What became of the verdict later is written by the worker that
-- judged, under the verdict's epoch, and changes nothing else. `vars` are names of variable sets, and values that were
-- given at the start; `json`, since they are read whole.
alter table runs
    add column stop_at_ns bigint,
    add column overtaken json,
    add column host text not null default '',
    add column vars json,
    add column timeout_ms bigint check (timeout_ms > 0),
    add column suite_run uuid,
    add column suite_step integer,
    add check (overtaken is null or verdict is not null),
    add check ((suite_run is null) = (suite_step is null));

-- What a worker looks through for runs to take: those that nobody has taken, lane by lane, and those that somebody has.
-- Both stay small, however long the history.
drop index runs_open;
create index runs_queued on runs (project, host, id) where epoch = 0;
create index runs_running on runs (id) where epoch > 0 and verdict is null;

-- How many runs are worked on, by project and host. Whoever takes runs asks this first and then has the turn until the
-- end of its transaction: what it sees is what was true when it got the turn, which a plain statement that waited for a
-- lock could not say. So a host never gets more runs than its bound, however many take at once.
create function running_runs() returns table (project text, host text, running bigint)
    language plpgsql volatile
    as $$
begin
    perform pg_advisory_xact_lock(7810779531);
    return query
        select runs.project, runs.host, count(*)
        from runs
        where epoch > 0 and verdict is null and lease_until > now()
        group by runs.project, runs.host;
end
$$;

-- What was started under a key of the caller's choice, so that a repeated request starts nothing. Not partitioned, since
-- the key must be the only one; old ones are pruned by `at`.
create table idempotency_keys (
    project text not null,
    key text not null,
    request bytea not null,
    started uuid not null,
    at timestamptz not null default now(),
    primary key (project, key)
);

create index idempotency_keys_at on idempotency_keys (at);

-- What runs have shown of a service, in the form of `model::LearnedService`.
create table learned (
    project text not null,
    service text not null,
    learned json not null,
    primary key (project, service)
);

-- A suite's run is owned like a run: under a lease, and an epoch that every write names. It keeps the steps that it
-- started with.
create table suite_runs (
    id uuid primary key,
    project text not null,
    suite_id text not null,
    name text not null,
    steps json not null,
    vars json,
    accepted_at_ns bigint not null,
    traceparent text,
    stop_at_ns bigint,
    epoch bigint not null default 0,
    lease_until timestamptz,
    worker text,
    verdict text check (verdict in ('passed', 'failed', 'inconclusive')),
    outcome json,
    state text not null generated always as (
        case when verdict is not null then 'ended' when epoch > 0 then 'running' else 'queued' end
    ) stored,
    check ((verdict is null) = (outcome is null))
);

create index suite_runs_open on suite_runs (id) where verdict is null;

create index suite_runs_of_suite on suite_runs (project, suite_id, id);

-- The one run of each step.
create table suite_steps (
    suite_run uuid not null references suite_runs (id) on delete cascade,
    step integer not null,
    run_id uuid not null,
    primary key (suite_run, step)
);
