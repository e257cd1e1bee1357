-- Outputs of a suite's step that nobody may see, and the variables that a later step has of them; both sealed.
alter table runs
    add column outputs_sealed bytea,
    add column secrets_sealed bytea;
