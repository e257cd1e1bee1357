-- The outline of a trace as columns of numbers, compressed with zstd, for the web page. It is made when the trace is stored, or by the
-- first reader of a trace that has none: of before this migration, or of a server that does not know it.
alter table traces add column columns_zstd bytea;

-- The bytes are compressed already. New partitions inherit it.
alter table traces alter column columns_zstd set storage external;
