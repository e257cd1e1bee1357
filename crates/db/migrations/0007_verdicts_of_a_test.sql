-- The runs of a test with a verdict: without it, those of a rare verdict were looked for among all runs of the test.
create index runs_of_test_by_verdict on runs (project, test_id, verdict, id desc);
