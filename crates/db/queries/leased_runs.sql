-- What a worker needs of the runs that it has leased: their ids are $1, their epochs $2. It is read apart from the lease, whose
-- statement excludes all other workers. Joins with `runs` are by single ids, or the planner might read all of its partitions.
select open.id as "id!", open.project as "project!", open.epoch as "epoch!", open.stalls as "stalls!",
    run.accepted_at_ns as "accepted_at_ns!", run.traceparent, open.trace_id, open.span_id, open.attempted_at_ns,
    open.answer_bytes, run.vars::text as vars, run.revision, run.starter, run.secrets_sealed, run.timeout_ms, open.stop_at_ns,
    open.provisional, open.bus_state, open.bus_slot,
    (select json_object_agg(service, learned)::text from learned
     where learned.project = open.project) as learned,
    (select learned_tests.learned::text from learned_tests
     where learned_tests.project = open.project and learned_tests.test_id = run.test_id) as learned_test,
    (select suite_runs.name from suite_runs where suite_runs.id = run.suite_run) as suite,
    (select json_object_agg(documents.id, document_versions.document)::text
     from documents join document_versions on document_versions.project = documents.project
         and document_versions.kind = documents.kind and document_versions.document_id = documents.id
         and document_versions.version = documents.version
     where documents.project = open.project and documents.kind = 'settleProfile'
         and not documents.deleted) as settle_profiles,
    (select json_object_agg(documents.kind, document_versions.document)::text
     from documents join document_versions on document_versions.project = documents.project
         and document_versions.kind = documents.kind and document_versions.document_id = documents.id
         and document_versions.version = documents.version
     where documents.project = open.project and documents.kind in ('analyzer', 'qualityGate')
         and documents.id = 'current' and not documents.deleted) as gates,
    exists (select from documents
     where documents.project = open.project and documents.kind = 'traceStore'
         and not documents.deleted) as "has_stores!",
    run.test_id as "test_id!", test_versions.version, name, document, file
from unnest($1::uuid[], $2::bigint[]) as mine (id, epoch)
cross join lateral (
    select * from open_runs where open_runs.id = mine.id and open_runs.epoch = mine.epoch
) as open
cross join lateral (select * from runs where runs.id = mine.id) as run
join tests on tests.project = open.project and tests.id = run.test_id
join test_versions on test_versions.project = open.project
    and test_versions.test_id = run.test_id and test_versions.version = run.test_version
order by open.id
