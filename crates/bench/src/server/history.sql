-- A history of `bench.runs` runs over the last six months, in tables of months as `db::months` makes them: eight projects, of
-- which one has half of all runs, fifty tests each, a run in ten failed, one in a hundred inconclusive; with their
-- events, traces, suites, keys, and the log of who changed what. A hundred runs are open.

create function pg_temp.id_at(ms bigint, n bigint) returns uuid language sql immutable as $$
    select (lpad(to_hex(ms), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid
$$;

create function pg_temp.project_of(n bigint) returns text language sql immutable as $$
    select case when n % 2 = 0 then 'shop' else 'team-' || (n / 2 % 7) end
$$;

do $$
declare
    month timestamptz;
    of text;
begin
    for ago in 1..6 loop
        month := date_trunc('month', now() at time zone 'UTC') at time zone 'UTC' - make_interval(months => ago);
        foreach of in array array['runs', 'events', 'traces'] loop
            execute format('create table if not exists %s_%s partition of %s for values from (%L) to (%L)',
                of, to_char(month, 'YYYY_MM'), of,
                (lpad(to_hex((extract(epoch from month) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid,
                (lpad(to_hex((extract(epoch from month + interval '1 month') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid);
        end loop;
    end loop;
end
$$;

insert into tests (project, id, version, file)
select project, 'test-' || t, 3, 'tests.yaml'
from (select distinct pg_temp.project_of(n) from generate_series(0, 13) as n) as projects (project), generate_series(0, 49) as t;

insert into test_versions (project, test_id, version, name, document, host)
select project, id, v, id, repeat('a line of the test' || chr(10), 30), 'host-' || length(id) || ':80'
from tests, generate_series(1, 3) as v;

insert into runs (project, id, test_id, test_version, host, accepted_at_ns, traceparent, epoch, worker, trace_id, span_id,
    attempted_at_ns, attempted_epoch, answered_epoch, verdict, outcome, ended_at_ns, events_last)
select pg_temp.project_of(n), pg_temp.id_at(ms, n), 'test-' || n / 14 % 50, 3, 'host-6:80', ms * 1000000,
    '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 1, 'worker-0', decode(md5(n::text), 'hex'),
    decode(left(md5(n::text), 16), 'hex'), ms * 1000000, 1, 1,
    case when n % 200 in (7, 8) then 'inconclusive' when n % 20 in (3, 4) then 'failed' else 'passed' end,
    json_build_object('test', 'test-' || n / 14 % 50, 'reasons', repeat('a reason ', 20)), ms * 1000000 + 900000000, 4
from (
    select n, (extract(epoch from now()) * 1000)::bigint - 1000
        - (150::bigint * 86400000 / current_setting('bench.runs')::bigint) * (current_setting('bench.runs')::bigint - n) as ms
    from generate_series(1, current_setting('bench.runs')::bigint) as n
) as moments;

insert into events (project, run_id, n, event)
select project, id, n, '{"at":"2026-01-01T00:00:00.000000000Z","what":"accepted"}' from runs, generate_series(1, 4) as n;

-- Traces are kept for a shorter time.
insert into traces (project, run_id, spans, otlp_zstd)
select project, id, 20, decode(repeat(md5(id::text), 40), 'hex') from runs
where accepted_at_ns > (extract(epoch from now()) * 1e9)::bigint - 30::bigint * 86400 * 1000000000;

insert into runs (project, id, test_id, test_version, host, accepted_at_ns)
select pg_temp.project_of(n), pg_temp.id_at((extract(epoch from now()) * 1000)::bigint, -n), 'test-1', 3, 'host-6:80', 1
from generate_series(1, 100) as n;

insert into open_runs (project, id, host, accepted_at_ns, events_last, epoch, lease_number, lease_until, trace_id, span_id,
    attempted_at_ns, attempted_epoch)
select pg_temp.project_of(n), pg_temp.id_at((extract(epoch from now()) * 1000)::bigint, -n), 'host-6:80', 1, 1,
    n % 2, case n % 2 when 1 then nextval('lease_numbers') end, case n % 2 when 1 then now() + interval '1 hour' end,
    case n % 4 when 1 then decode(md5((-n)::text), 'hex') end, case n % 4 when 1 then decode(left(md5((-n)::text), 16), 'hex') end,
    case n % 4 when 1 then 1 end, case n % 4 when 1 then 1 end
from generate_series(1, 100) as n;

insert into suite_runs (id, project, suite_id, name, steps, accepted_at_ns, epoch, verdict, outcome)
select pg_temp.id_at((extract(epoch from now()) * 1000)::bigint - n * 1000, n), pg_temp.project_of(n), 'suite-' || n % 9, 'a suite', '[]',
    1, 1, case when n > 5 then 'passed' end, case when n > 5 then '{}'::json end
from generate_series(1, current_setting('bench.runs')::bigint / 50) as n;

insert into suite_steps (suite_run, step, run_id)
select suite_runs.id, step, pg_temp.id_at(1, step) from suite_runs, generate_series(0, 3) as step;

insert into idempotency_keys (project, key, request, started)
select project, 'key-' || id, sha256('a'), id from runs limit current_setting('bench.runs')::bigint / 10;

insert into audit (at_ns, who, method, route, path, project, status)
select (extract(epoch from now()) * 1e9)::bigint - (current_setting('bench.runs')::bigint / 5 - n) * 1000000000,
    'ada', 'POST', '/api/v1/tests/{test}/runs', '/api/v1/tests/test-1/runs', 'shop', 202
from generate_series(1, current_setting('bench.runs')::bigint / 5) as n;

insert into tokens (id, kind, name, hash, role, made_at_ns, made_by, expires_at_ns)
select pg_temp.id_at(n, n), case when n % 10 = 0 then 'token' else 'session' end, 'token ' || n, sha256(n::text::bytea), 'editor', n, 'ada', 9e18
from generate_series(1, current_setting('bench.runs')::bigint / 100) as n;

insert into documents (project, kind, id, version, file)
select distinct project, 'testSuite', 'suite-' || n, 2, 'suites.yaml' from tests, generate_series(1, 50) as n;
insert into document_versions (project, kind, document_id, version, name, document)
select project, kind, id, v, id, 'a suite' from documents, generate_series(1, 2) as v;

insert into learned (project, service, learned)
select project, 'service-' || n, '{}'::json from (select distinct project from tests) as projects, generate_series(1, 20) as n;

analyze;
