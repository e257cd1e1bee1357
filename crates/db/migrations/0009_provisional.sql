-- Verdicts that linger: what was judged first, under which epoch, and how long the spans of a test keep on coming.
alter table runs
    add column provisional text check (provisional in ('passed', 'failed', 'inconclusive')),
    add column provisional_epoch bigint,
    add check ((provisional is null) = (provisional_epoch is null));

-- A run that lingers puts no load on its host and holds no slot of a worker.
create or replace function running_runs() returns table (project text, host text, running bigint)
    language plpgsql volatile
    as $$
begin
    perform pg_advisory_xact_lock(7810779531);
    return query
        select runs.project, runs.host, count(*)
        from runs
        where epoch > 0 and verdict is null and provisional is null and lease_until > now()
        group by runs.project, runs.host;
end
$$;

create table learned_tests (
    project text not null,
    test_id text not null,
    learned json not null,
    primary key (project, test_id)
);
