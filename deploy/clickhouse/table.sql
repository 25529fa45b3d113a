-- The table of calls, as the gateway makes it where there is none.
create table if not exists tollgate_usage (
  day Date,
  started UInt32,
  account_id String,
  id String,
  key_id String,
  product String,
  endpoint String,
  outcome String,
  status Int32,
  charged Int64,
  loss Int64,
  cost Nullable(Int64),
  vendor String,
  credential String,
  client String,
  stream UInt8,
  estimated UInt8,
  duration_ms Int32,
  first_byte_ms Int32,
  catalog_version Int32,
  input_tokens Int64,
  output_tokens Int64,
  fault String,
  message String,
  label_names Array(String),
  label_values Array(String)
) engine = ReplacingMergeTree()
partition by toYYYYMM(day)
order by (day, account_id, id);
