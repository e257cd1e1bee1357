select id, test_id, test_version, verdict, accepted_at_ns, ended_at_ns, revision,
    null::bigint as open_epoch, null::text as provisional, trace_id
from runs
where project = $1 and verdict = $5 and id >= $2 and id < $3
order by id desc limit $4
