-- Open runs: those without a verdict. A run is written often while it is open and once afterwards, so that what is written often
-- has a small table of its own: `runs`, which holds the history with all its indexes, is written when a run is accepted and when
-- it has its verdict. The statement of the verdict deletes the open run.
--
-- Half of each page is free: a renewal, an attempt or a response then changes a row in its page, and leaves no dead entry in an
-- index. Only a lease and a provisional verdict do. Vacuum comes after a thousand dead rows and does not pause.

-- A server that accepts or leases a run meanwhile waits, and is then refused: no run is left out of the copy below.
lock table runs in access exclusive mode;

-- Numbers the leases in their order.
create sequence lease_numbers;

create table open_runs (
    id uuid primary key,
    project text not null,
    host text not null,
    -- Where the lane of the run, its project and its host, is in the order of the lanes: by a hash, so that the lanes that follow a
    -- random key are a random choice.
    project_key bigint not null generated always as (('x' || left(md5(project), 15))::bit(60)::bigint) stored,
    host_key bigint not null generated always as (('x' || left(md5(host), 15))::bit(60)::bigint) stored,
    accepted_at_ns bigint not null,
    events_last bigint not null,
    epoch bigint not null default 0,
    lease_number bigint,
    lease_until timestamptz,
    worker text,
    stalls integer not null default 0,
    stop_at_ns bigint,
    trace_id bytea check (octet_length(trace_id) = 16),
    span_id bytea check (octet_length(span_id) = 8),
    attempted_at_ns bigint,
    attempted_epoch bigint,
    answer_sealed bytea,
    answer_bytes bigint,
    answered_epoch bigint,
    provisional text check (provisional in ('passed', 'failed', 'inconclusive')),
    provisional_epoch bigint,
    outputs_sealed bytea,
    check ((epoch = 0) = (lease_number is null)),
    check (num_nulls(trace_id, span_id, attempted_at_ns, attempted_epoch) in (0, 4)),
    check (num_nulls(answer_sealed, answer_bytes, answered_epoch) in (0, 3)),
    check (answered_epoch is null or attempted_epoch is not null),
    check ((provisional is null) = (provisional_epoch is null))
) with (
    fillfactor = 50,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0
);
-- It is compressed already.
alter table open_runs alter column answer_sealed set storage external;

-- What a lease reads: the queue of a project, the queues of its lanes, and the active runs; a poll reads those that linger, too.
-- The order of acceptance is not that of the primary key, lest the planner walks along that one.
create index open_runs_queued on open_runs (project_key, accepted_at_ns, id) where epoch = 0;
create index open_runs_lanes on open_runs (project_key, host_key, accepted_at_ns, id) where epoch = 0;
create index open_runs_active on open_runs (lease_number) where epoch > 0 and provisional is null;
create index open_runs_lingering on open_runs (id) where provisional is not null;

-- Responses from before they were sealed get the form of an unsealed one: two zero bytes and JSON.
insert into open_runs (id, project, host, accepted_at_ns, events_last, epoch, lease_number, lease_until, worker, stalls, stop_at_ns,
    trace_id, span_id, attempted_at_ns, attempted_epoch, answer_sealed, answer_bytes, answered_epoch, provisional, provisional_epoch,
    outputs_sealed)
select id, project, host, accepted_at_ns, events_last, epoch, case when epoch > 0 then nextval('lease_numbers') end, lease_until,
    worker, stalls, stop_at_ns, trace_id, span_id, attempted_at_ns, attempted_epoch,
    case when answer is not null then coalesce(answer_sealed, '\x0000' || convert_to(answer::text, 'UTF8')) end,
    case when answer is not null then coalesce(answer_bytes, 0) end, answered_epoch, provisional, provisional_epoch, outputs_sealed
from runs
where epoch = 0 and verdict is null or epoch > 0 and verdict is null;

drop function running_runs();
drop index runs_queued;
drop index runs_running;

alter table runs
    drop column state,
    drop column lease_until,
    drop column answer,
    drop column answer_sealed,
    drop column answer_bytes,
    alter column events_last drop not null;

-- A server from before this migration has its open runs in `runs`. It is refused, and changes nothing.
create function refuse_older_server() returns trigger language plpgsql as $$
begin
    raise exception 'a later version of Qualitytrace has changed the tables: start that version here too'
        using errcode = 'cannot_connect_now';
end
$$;
create trigger open_run_inserted before insert on runs
    for each row when (new.verdict is null and new.events_last is not null) execute function refuse_older_server();
create trigger open_run_updated before update on runs
    for each row when (new.verdict is null) execute function refuse_older_server();
create function running_runs() returns table (project text, host text, running bigint) language plpgsql as $$
begin
    raise exception 'a later version of Qualitytrace has changed the tables: start that version here too'
        using errcode = 'cannot_connect_now';
end
$$;

-- Chooses up to `wanted` runs to lease, and keeps the turn until the end of the transaction: of all workers, one at a time leases.
-- Returns no row while another one has the turn: it is tried and not waited for, since a statement that waits sees what was true
-- before its wait. Else it returns the chosen runs, and then a row without a run: the number of the oldest active lease, from which on
-- the next call of the same caller reads, and whether there are queued runs that it did not read.
--
-- The runs in `expired` come first, if their lease has expired. Then comes the project with the fewest active runs, and of its runs
-- the oldest. At most `host_max` runs are active against one host. The last `runs_reserved` of the worker's slots, and the last
-- `host_reserved` of a host's, are for projects that have no more than so many active runs, or there: however many runs of one
-- project hang, another's are leased. A run with a provisional verdict is not active: it puts no load on its host, and has no slot.
--
-- The cost does not grow with the number of projects, nor with that of hosts: the function reads the oldest runs of up to eight
-- projects. If there are more, it begins at a random one, and goes on from the first after the last. A lane is a project and a host;
-- it is full if its host has no room for its project. If the oldest 256 runs of a project are all in full lanes, the function reads
-- the oldest of up to four other lanes.
--
-- Every query walks along an index and never builds a bitmap: a walk marks the dead entries that it meets, and the next one does
-- not visit their rows.
create function leasable_runs(
    wanted bigint, host_max bigint, runs_reserved bigint, host_reserved bigint, active_from bigint, expired uuid[]
) returns table (id uuid, oldest_lease bigint, is_partial boolean)
    language plpgsql volatile
    set enable_bitmapscan = off
    set enable_seqscan = off
    set jit = off
    as $$
declare
    projects_max constant integer := 8;
    lanes_max constant integer := 4;
    -- Full lanes that are passed over.
    full_lanes_max constant integer := 32;
    oldest_max constant bigint := 256;
    -- Both walks go from here to the last key, and then from the first one to here.
    begin_key constant bigint := ('x' || left(md5(random()::text), 15))::bit(60)::bigint;
    active_projects text[];
    active_hosts text[];
    active_runs bigint[];
    -- The full lanes; without a project: of every project.
    full_projects text[];
    full_hosts text[];
    oldest_active bigint;
    some_unread boolean;
    ids uuid[];
    projects text[];
    hosts text[];
begin
    if not pg_try_advisory_xact_lock(7810779531) then
        return;
    end if;
    select array_agg(busy.project), array_agg(busy.host), array_agg(busy.runs), min(oldest)
    into active_projects, active_hosts, active_runs, oldest_active
    from (
        select open.project, open.host, min(lease_number) as oldest, count(*) filter (where lease_until > now()) as runs
        from open_runs as open where epoch > 0 and provisional is null and lease_number >= active_from
        group by open.project, open.host
    ) as busy;
    with active as materialized (
        select * from unnest(active_projects, active_hosts, active_runs) as active (project, host, runs)
        where active.host <> ''
    ), busy as materialized (
        select active.host, sum(active.runs) as runs from active group by active.host
    ), full_lanes as (
        select null::text as project, busy.host from busy where busy.runs >= host_max
        union all
        select active.project, active.host from active join busy on busy.host = active.host
        where busy.runs >= host_max - host_reserved and active.runs >= host_reserved
    )
    select array_agg(full_lanes.project), array_agg(full_lanes.host) into full_projects, full_hosts from full_lanes;
    with recursive ring (project_key, is_before, nth) as (
        select * from (
            (select project_key, false, 1 from open_runs where epoch = 0 and project_key >= begin_key
             order by project_key, accepted_at_ns limit 1)
            union all
            (select project_key, true, 1 from open_runs where epoch = 0 and project_key < begin_key
             order by project_key, accepted_at_ns limit 1)
            limit 1
        ) as first
        union all
        select following.project_key, following.is_before, nth + 1 from ring cross join lateral (
            (select project_key, false as is_before from open_runs
             where not ring.is_before and epoch = 0 and project_key > ring.project_key
             order by project_key, accepted_at_ns limit 1)
            union all
            (select project_key, true from open_runs
             where epoch = 0 and project_key < begin_key
                 and project_key > case when ring.is_before then ring.project_key else -1 end
             order by project_key, accepted_at_ns limit 1)
            limit 1
        ) as following
        where nth <= projects_max
    ), bounds as materialized (
        select least(wanted, greatest(4, 4 * wanted / greatest(count(*), 1))) as runs_max, count(*) > projects_max as is_cut
        from ring
    ), oldest as materialized (
        select run.id, run.project, run.host, ring.project_key
        from ring cross join lateral (
            select * from (
                select open.id, open.project, open.host from open_runs as open
                where epoch = 0 and open.project_key = ring.project_key
                order by open.accepted_at_ns, open.id
                limit case when full_hosts is null then (select runs_max from bounds) else oldest_max end
            ) as looked
            where full_hosts is null or not exists (
                select from unnest(full_projects, full_hosts) as full_lane (project, host)
                where full_lane.host = looked.host and coalesce(full_lane.project, looked.project) = looked.project)
            limit (select runs_max from bounds)
        ) as run
        where ring.nth <= projects_max
    ), lanes as materialized (
        select ring.project_key, lane.host_key
        from ring cross join lateral (
            with recursive host_ring (host_key, project, host, is_before, nth) as (
                select * from (
                    (select host_key, open.project, open.host, false, 1 from open_runs as open
                     where epoch = 0 and project_key = ring.project_key and host_key >= begin_key
                     order by host_key, accepted_at_ns limit 1)
                    union all
                    (select host_key, open.project, open.host, true, 1 from open_runs as open
                     where epoch = 0 and project_key = ring.project_key and host_key < begin_key
                     order by host_key, accepted_at_ns limit 1)
                    limit 1
                ) as first
                union all
                select following.host_key, following.project, following.host, following.is_before, host_ring.nth + 1
                from host_ring cross join lateral (
                    (select host_key, open.project, open.host, false as is_before from open_runs as open
                     where not host_ring.is_before and epoch = 0 and project_key = ring.project_key
                         and host_key > host_ring.host_key
                     order by host_key, accepted_at_ns limit 1)
                    union all
                    (select host_key, open.project, open.host, true from open_runs as open
                     where epoch = 0 and project_key = ring.project_key and host_key < begin_key
                         and host_key > case when host_ring.is_before then host_ring.host_key else -1 end
                     order by host_key, accepted_at_ns limit 1)
                    limit 1
                ) as following
                where host_ring.nth < full_lanes_max
            )
            select host_ring.host_key from host_ring
            where not exists (
                select from unnest(full_projects, full_hosts) as full_lane (project, host)
                where full_lane.host = host_ring.host and coalesce(full_lane.project, host_ring.project) = host_ring.project)
            limit lanes_max
        ) as lane
        where full_hosts is not null and ring.nth <= projects_max
            and ring.project_key not in (select oldest.project_key from oldest)
    ), candidates as (
        select oldest.id, oldest.project, oldest.host from oldest
        union all
        select run.id, run.project, run.host from lanes cross join lateral (
            select open.id, open.project, open.host from open_runs as open
            where epoch = 0 and open.project_key = lanes.project_key and open.host_key = lanes.host_key
            order by open.accepted_at_ns, open.id limit (select runs_max from bounds)
        ) as run
    )
    select array_agg(candidates.id), array_agg(candidates.project), array_agg(candidates.host),
        (select is_cut or runs_max < wanted from bounds)
    into ids, projects, hosts, some_unread
    from candidates;
    return query
    with candidates as materialized (
        select * from unnest(ids, projects, hosts) as candidate (id, project, host)
    ), active as materialized (
        select * from unnest(active_projects, active_hosts, active_runs) as active (project, host, runs)
    ), active_of_host as materialized (
        select active.host, sum(active.runs)::bigint as runs from active group by active.host
    ), active_of_project as materialized (
        select active.project, sum(active.runs)::bigint as runs from active group by active.project
    ), queued as materialized (
        select candidates.id, candidates.host,
            coalesce(active_of_project.runs, 0)
                + row_number() over (partition by candidates.project order by candidates.id) as rank,
            coalesce(active.runs, 0)
                + row_number() over (partition by candidates.project, candidates.host order by candidates.id) as rank_of_host,
            host_max - coalesce(active_of_host.runs, 0) as room
        from candidates
        left join active_of_project on active_of_project.project = candidates.project
        left join active_of_host on active_of_host.host = candidates.host and candidates.host <> ''
        left join active on active.project = candidates.project and active.host = candidates.host
    ), waiting (id, rank) as materialized (
        select unnest(expired), 0::bigint
        union all
        select ranked.id, ranked.rank from (
            select queued.id, queued.host, queued.rank, rank_of_host, room,
                row_number() over (partition by queued.host order by queued.rank, queued.id) as nth
            from queued
        ) as ranked
        where ranked.host = '' or nth <= room - host_reserved or nth <= room and rank_of_host <= host_reserved
    ), next as materialized (
        select run.id from (
            select waiting.id from waiting order by waiting.rank, waiting.id limit wanted
        ) as first cross join lateral (
            select open.id from open_runs as open
            where open.id = first.id and (lease_until is null or lease_until <= now())
            for update skip locked
        ) as run
        limit greatest(wanted - runs_reserved, least(wanted, (select count(*) from waiting where rank <= runs_reserved)))
    )
    select next.id, null::bigint, null::boolean from next
    union all
    select null, coalesce(oldest_active, pg_sequence_last_value('lease_numbers'), 0),
        coalesce(some_unread or cardinality(ids) > (select count(*) from next), false);
end
$$;
