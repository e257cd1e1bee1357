-- How many owners of a run let their lease pass: they stalled or died. One that gives a run back has no lease any more.
alter table runs add column stalls integer not null default 0;
