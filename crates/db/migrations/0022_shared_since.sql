-- Since when a server has shared all that it knows over its bus; none if it has since its start. One that shared nothing for a moment
-- has refused spans, and the notice about it may come behind what another server has read.
alter table servers add column shared_since timestamptz;
