-- The slot to which the spans of a run go on a shared bus. A trace id that this installation minted carries it; of the id that a
-- `traceid` trigger waits for, servers know it from here.
alter table open_runs add column bus_slot integer check (bus_slot between 0 and 65535);
