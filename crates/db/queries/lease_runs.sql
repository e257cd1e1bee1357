-- Leases up to $3 runs to the worker $1 for $2 seconds, at most $4 active ones against one host; $5 is now, $6 and $7 are the slots
-- of the worker and of a host that are reserved for projects with few active runs, $8 is the oldest lease that can be active, and
-- $9 are runs whose lease had expired. The migration that makes `leasable_runs` describes the order.
--
-- Returns a row for each run, and then a row without a run; none while another worker leases.
with found as materialized (
    select * from leasable_runs($3, $4, $6, $7, $8, $9)
), leased as (
    update open_runs
    set epoch = epoch + 1, worker = $1, lease_number = nextval('lease_numbers'),
        lease_until = now() + make_interval(secs => $2),
        stalls = stalls + case when epoch > 0 and lease_until is not null then 1 else 0 end,
        events_last = events_last + 1
    where id = any (array(select id from found where id is not null))
    returning id, project, epoch, events_last
), event as (
    insert into events (project, run_id, n, event)
    select project, id, events_last, json_build_object(
        'at', $5::text, 'what', json_build_object('taken', json_build_object('epoch', epoch)))
    from leased
)
select id as "id?", epoch as "epoch?", null::bigint as "oldest_lease?", null::boolean as "is_partial?" from leased
union all
select null, null, oldest_lease, is_partial from found where id is null
