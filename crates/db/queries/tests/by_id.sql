-- Tests whose id or name contains a text, by id.
select kept.id as "id!", kept.version as "version!", versions.name as "name!", null::integer as rank
from kept join kept_versions versions using (project, kind, id, version)
where kept.project = $1 and kept.kind = 'test' and kept.id > $2
    and ($3 = '' or strpos(lower(kept.id || chr(10) || versions.name), lower($3)) > 0)
order by kept.id limit $4
