// The table of calls in ClickHouse, as deploy/clickhouse has it too. Amounts are micro-credits.

/** The name under which it is written and read; in a cluster, that of the `Distributed` table. */
export const TABLE = 'tollgate_usage'

/**
 * `day` is that of the start of the call, which its id has, so a row that is sent again is in the same partition and
 * replaces itself.
 */
const COLUMNS = {
  day: 'Date',
  started: 'UInt32',
  account_id: 'String',
  id: 'String',
  key_id: 'String',
  product: 'String',
  endpoint: 'String',
  outcome: 'String',
  status: 'Int32',
  charged: 'Int64',
  loss: 'Int64',
  cost: 'Nullable(Int64)',
  vendor: 'String',
  credential: 'String',
  client: 'String',
  stream: 'UInt8',
  estimated: 'UInt8',
  duration_ms: 'Int32',
  first_byte_ms: 'Int32',
  catalog_version: 'Int32',
  input_tokens: 'Int64',
  output_tokens: 'Int64',
  fault: 'String',
  message: 'String',
  label_names: 'Array(String)',
  label_values: 'Array(String)',
} as const

const COLUMN_LIST = Object.entries(COLUMNS)
  .map(([name, type]) => `  ${name} ${type}`)
  .join(',\n')

export const CREATE = `create table if not exists ${TABLE} (
${COLUMN_LIST}
) engine = ReplacingMergeTree()
partition by toYYYYMM(day)
order by (day, account_id, id)`
