-- The state of the system that a run ran against, in its caller's words: runs of one revision should come to one verdict.
alter table runs add column revision text;
