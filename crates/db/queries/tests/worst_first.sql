-- Tests whose id or name contains a text: those whose last verdict is failed, then inconclusive, then all others, by id. Only
-- recent runs count, so that few months are read.
select listed.id as "id!", listed.version as "version!", listed.name as "name!", listed.rank
from (
    select kept.id, kept.version, versions.name,
        coalesce((
            select case runs.verdict when 'failed' then 0 when 'inconclusive' then 1 else 2 end
            from runs
            where runs.project = $1 and runs.test_id = kept.id and runs.verdict is not null
                and runs.id >= $6
            order by runs.id desc limit 1
        ), 2) as rank
    from kept join kept_versions versions using (project, kind, id, version)
    where kept.project = $1 and kept.kind = 'test'
        and ($2 = '' or strpos(lower(kept.id || chr(10) || versions.name), lower($2)) > 0)
) listed
where (listed.rank, listed.id) > ($3::integer, $4::text)
order by listed.rank, listed.id limit $5
