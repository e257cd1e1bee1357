-- What the system answered is sealed until the verdict, and large outcomes are kept compressed beside their row.
--
-- An answer is `answer_sealed`, its body has `answer_bytes`, and `answer` says only that there is one; rows from before have it
-- there. Of a large outcome
-- `outcome` has all but the answer, and `outcome_zstd` all.
alter table runs
    add column answer_sealed bytea,
    add column answer_bytes bigint,
    add column outcome_zstd bytea;
-- It is compressed already.
alter table runs
    alter column answer_sealed set storage external,
    alter column outcome_zstd set storage external;
