-- In a cluster, make both tables before the gateway starts: it finds tollgate_usage and makes none of its own.
create table if not exists tollgate_usage_local on cluster '{cluster}' (
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
) engine = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/tollgate_usage', '{replica}')
partition by toYYYYMM(day)
order by (day, account_id, id);

-- A call that is sent again must reach the same shard, so its id chooses the shard.
create table if not exists tollgate_usage on cluster '{cluster}' as tollgate_usage_local
engine = Distributed('{cluster}', currentDatabase(), tollgate_usage_local, cityHash64(id));

-- The gateway takes calls as sent when an insert is answered, so the profile of its user must have these settings:
-- insert_distributed_sync = 1 (newer: distributed_foreground_insert = 1): the answer waits for the shards;
-- insert_quorum = 2: a lost replica loses nothing;
-- select_sequential_consistency = 1: reports read every replica as it was when the insert was answered.
