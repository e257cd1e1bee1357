-- Runs over time: found by project, by test and by verdict, the newest first. Months of them are tables of their own,
-- which the program makes ahead and drops (`db::months`); what stands in the default ones is from before there were any.
alter table runs add column ended_at_ns bigint;

create index runs_newest on runs (project, id desc);
create index runs_of_test on runs (project, test_id, id desc);
create index runs_by_verdict on runs (project, verdict, id desc);
