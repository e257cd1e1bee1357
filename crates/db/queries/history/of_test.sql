select id, test_id, test_version, verdict, accepted_at_ns, ended_at_ns, revision,
    case when verdict is null then (select epoch from open_runs where open_runs.id = runs.id) end as open_epoch,
    case when verdict is null then (select provisional from open_runs where open_runs.id = runs.id) end as provisional,
    case when verdict is null then (select open_runs.trace_id from open_runs where open_runs.id = runs.id)
        else trace_id end as trace_id
from runs
where project = $1 and test_id = $5 and id >= $2 and id < $3
order by id desc limit $4
