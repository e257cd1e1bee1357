-- From where a session began, and when it was last seen, to the minute.
alter table tokens
    add column address text,
    add column seen_at_ns bigint;

-- The sessions of a person.
create index tokens_person on tokens (issuer, subject, id) where kind = 'session';
