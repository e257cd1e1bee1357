-- The migration of a later version, for tests of an upgrade: it changes each table that servers of this version write meanwhile, and
-- they go on. Its number is that of the last real migration and one.
alter table runs add column of_next_version text;
alter table open_runs add column of_next_version text not null default 'none';
alter table servers add column of_next_version text;
create table of_next_version (run_id uuid primary key);
