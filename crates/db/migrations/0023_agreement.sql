-- What the servers on this database have agreed on, so that servers of two versions run beside each other during an upgrade.
create table agreement (
    one boolean primary key default true check (one),
    -- The migration that a server has to know: an older one would misread the tables.
    schema_min bigint not null,
    -- The version of the messages that servers write to the bus: each server that counts reads it.
    bus_version integer not null
);
insert into agreement (schema_min, bus_version) values (23, 1);

alter table servers
    -- The last migration that the server knows, and the last version of messages on the bus. A server from before this migration has
    -- neither.
    add column schema_version bigint,
    add column bus_version integer;

-- A migration after which the statements of servers that do not know it would fail, or would be wrong, begins with this: it refuses
-- while such a server counts, and from then on such a server is refused. The lock is that under which servers register.
create function require_schema(needed bigint) returns void language plpgsql as $$
declare
    older text;
begin
    perform pg_advisory_xact_lock(7810779534);
    select string_agg(name, ', ' order by name) into older from servers
    where counts_until > clock_timestamp() and coalesce(schema_version, 22) < needed;
    if older is not null then
        raise exception 'the tables are migrated once the servers of older versions have ended (%)', older
            using errcode = 'cannot_connect_now';
    end if;
    update agreement set schema_min = needed where schema_min < needed;
end
$$;
