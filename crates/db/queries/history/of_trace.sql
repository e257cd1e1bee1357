select runs.id as "id!", test_id as "test_id!", test_version as "test_version!", verdict, accepted_at_ns as "accepted_at_ns!",
    ended_at_ns, revision, found.epoch as open_epoch, found.provisional, $2::bytea as trace_id
from (
    select id, null::bigint as epoch, null::text as provisional from runs
    where project = $1 and trace_id = $2 and verdict is not null
    union all
    select id, epoch, provisional from open_runs
    where epoch > 0 and provisional is null and project = $1 and trace_id = $2
    union all
    select id, epoch, provisional from open_runs where provisional is not null and project = $1 and trace_id = $2
) as found cross join lateral (select * from runs where runs.id = found.id) as runs
order by found.id desc limit $3
