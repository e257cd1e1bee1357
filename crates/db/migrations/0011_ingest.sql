-- Tokens that send spans and do nothing else.
alter table tokens drop constraint tokens_role_check;
alter table tokens add constraint tokens_role_check check (role in ('ingest', 'viewer', 'editor', 'admin'));
