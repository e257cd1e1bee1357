-- What runs have seen of a project's services through trace stores: a delay through a store is none of pushed spans.
create table learned_stores (
    project text not null,
    store text not null,
    learned json not null,
    primary key (project, store)
);
