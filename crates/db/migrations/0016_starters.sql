-- Who started a run, by kind: `anyone` where access is off, `token`, `person`, or `suite`.
alter table runs add column starter text;
