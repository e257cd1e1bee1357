select of_test.id as "id!", of_test.test_id as "test_id!", of_test.test_version as "test_version!", of_test.verdict,
    of_test.accepted_at_ns as "accepted_at_ns!", of_test.ended_at_ns, of_test.revision, of_test.open_epoch,
    of_test.provisional, of_test.trace_id
from unnest($2::text[]) as tests (id), lateral (
    select id, test_id, test_version, verdict, accepted_at_ns, ended_at_ns, revision,
        case when verdict is null then (select epoch from open_runs where open_runs.id = runs.id) end as open_epoch,
        case when verdict is null then (select provisional from open_runs where open_runs.id = runs.id) end as provisional,
        case when verdict is null then (select open_runs.trace_id from open_runs where open_runs.id = runs.id)
            else trace_id end as trace_id
    from runs
    where project = $1 and test_id = tests.id
    order by id desc limit $3
) of_test
order by of_test.test_id, of_test.id desc
