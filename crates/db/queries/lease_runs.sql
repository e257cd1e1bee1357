-- Takes up to $3 runs for the worker $1 under a lease of $2 seconds, at most $4 in flight against one host; $5 is now, $6
-- how many more are looked at than are wanted. The last $7 of the worker's slots, and the last $8 of a host's, are for projects
-- that have no more than so many runs in flight, or there: however many runs of one project hang, another's are taken.
--
-- A lane is a project and a host. The lanes that have queued runs are found by a walk along an index, the first runs of
-- each by the same one, so that neither a long queue nor a long history is read. Joins with `runs` are by single ids, or
-- the planner might prefer to read all of them.
with recursive running as materialized (
    select * from running_runs()
), busy_hosts as materialized (
    select host, sum(running)::bigint as running from running group by host
), busy_projects as materialized (
    select project, sum(running)::bigint as running from running group by project
), lanes as (
    (select project, host from runs where epoch = 0 order by project, host limit 1)
    union all
    select following.project, following.host from lanes cross join lateral (
        select project, host from runs
        where epoch = 0 and (project, host) > (lanes.project, lanes.host)
        order by project, host limit 1
    ) as following
), queued as materialized (
    select run.id, lanes.host,
        coalesce(busy_projects.running, 0)
            + row_number() over (partition by lanes.project order by run.id) as rank,
        coalesce(running.running, 0)
            + row_number() over (partition by lanes.project, lanes.host order by run.id) as rank_of_host,
        $4 - coalesce(busy_hosts.running, 0) as room
    from lanes
    left join busy_projects on busy_projects.project = lanes.project
    left join busy_hosts on busy_hosts.host = lanes.host and lanes.host <> ''
    left join running on running.project = lanes.project and running.host = lanes.host
    cross join lateral (
        select id from runs
        where epoch = 0 and project = lanes.project and host = lanes.host
            and (lanes.host = '' or coalesce(busy_hosts.running, 0) < $4)
        order by id limit $3::bigint + $6::bigint
    ) as run
), waiting as materialized (
    select id, 0::bigint as rank from runs
    where epoch > 0 and verdict is null and (lease_until is null or lease_until <= now())
    union all
    select id, rank from (
        select id, host, rank, rank_of_host, room,
            row_number() over (partition by host order by rank, id) as nth
        from queued
    ) as ranked
    where host = '' or nth <= room - $8::bigint or nth <= room and rank_of_host <= $8::bigint
), next as materialized (
    select run.id from (
        select id from waiting order by rank, id limit $3 + $6
    ) as first cross join lateral (
        select runs.id from runs
        where runs.id = first.id and verdict is null
            and (lease_until is null or lease_until <= now())
        for update skip locked
    ) as run
    limit greatest($3 - $7::bigint, least($3, (select count(*) from waiting where rank <= $7)))
), taken as (
    update runs
    set epoch = epoch + 1, worker = $1, lease_until = now() + make_interval(secs => $2),
        stalls = stalls + case when epoch > 0 and lease_until is not null then 1 else 0 end,
        events_last = events_last + 1
    where id = any (array(select id from next))
    returning runs.*
), event as (
    insert into events (project, run_id, n, event)
    select project, id, events_last, json_build_object(
        'at', $5::text, 'what', json_build_object('taken', json_build_object('epoch', epoch)))
    from taken
)
select taken.id as "id!", taken.project as "project!", epoch as "epoch!", stalls as "stalls!",
    accepted_at_ns as "accepted_at_ns!", traceparent, trace_id, span_id, attempted_at_ns,
    case when answer is not null then coalesce(answer_bytes, 0) end as answer_bytes, vars::text as vars, revision, starter, secrets_sealed, timeout_ms, stop_at_ns, provisional,
    (select json_object_agg(service, learned)::text from learned
     where learned.project = taken.project) as learned,
    (select learned_tests.learned::text from learned_tests
     where learned_tests.project = taken.project and learned_tests.test_id = taken.test_id) as learned_test,
    (select suite_runs.name from suite_runs where suite_runs.id = taken.suite_run) as suite,
    (select json_object_agg(documents.id, document_versions.document)::text
     from documents join document_versions on document_versions.project = documents.project
         and document_versions.kind = documents.kind and document_versions.document_id = documents.id
         and document_versions.version = documents.version
     where documents.project = taken.project and documents.kind = 'settleProfile'
         and not documents.deleted) as settle_profiles,
    (select json_object_agg(documents.kind, document_versions.document)::text
     from documents join document_versions on document_versions.project = documents.project
         and document_versions.kind = documents.kind and document_versions.document_id = documents.id
         and document_versions.version = documents.version
     where documents.project = taken.project and documents.kind in ('analyzer', 'qualityGate')
         and documents.id = 'current' and not documents.deleted) as gates,
    exists (select from documents
     where documents.project = taken.project and documents.kind = 'traceStore'
         and not documents.deleted) as "has_stores!",
    taken.test_id as "test_id!", test_versions.version, name, document, file
from taken
join tests on tests.project = taken.project and tests.id = taken.test_id
join test_versions on test_versions.project = taken.project
    and test_versions.test_id = taken.test_id and test_versions.version = test_version
order by taken.id
