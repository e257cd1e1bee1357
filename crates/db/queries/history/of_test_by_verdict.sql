select id, test_id, test_version, state as "state!", verdict,
    case when verdict is null then provisional end as provisional, accepted_at_ns, ended_at_ns, trace_id, revision
from runs
where project = $1 and test_id = $5 and verdict = $6 and id >= $2 and id < $3
order by id desc limit $4
