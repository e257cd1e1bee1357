-- What is kept beside tests: suites, variable sets, stores, settle profiles, analyzers, gates. A version of a document
-- never changes. Tests stay in tables of their own, since runs point at them; two views show both as one.

create table documents (
    project text not null,
    kind text not null check (kind in ('suite', 'variableSet', 'store', 'settleProfile', 'analyzer', 'gate')),
    id text not null,
    version integer not null,
    file text not null,
    provisioned boolean not null default false,
    deleted boolean not null default false,
    primary key (project, kind, id)
);

-- Of kinds that hold secrets the document is sealed, whole, under a key that is not in this database.
create table document_versions (
    project text not null,
    kind text not null,
    document_id text not null,
    version integer not null,
    name text not null,
    document text,
    sealed bytea,
    created_at_ns bigint,
    primary key (project, kind, document_id, version),
    foreign key (project, kind, document_id) references documents (project, kind, id),
    check (num_nonnulls(document, sealed) = 1),
    check ((sealed is not null) = (kind in ('variableSet', 'store')))
);

-- A test that is deleted keeps its versions, for the runs that point at them, and its number goes on where it ended.
-- Whether a test was provisioned is said by who applied it last. When a version was made is not known of old ones.
alter table tests
    add column provisioned boolean not null default false,
    add column deleted boolean not null default false;
alter table test_versions add column created_at_ns bigint;

create view kept as
    select project, 'test' as kind, id, version, file, provisioned from tests where not deleted and version > 0
    union all
    select project, kind, id, version, file, provisioned from documents where not deleted and version > 0;

create view kept_versions as
    select project, 'test' as kind, test_id as id, version, name, document, null::bytea as sealed, created_at_ns
    from test_versions
    union all
    select project, kind, document_id, version, name, document, sealed, created_at_ns from document_versions;
