// How the sums of an hour grow: said once for the statements that add to them, in functions of the database and out of them.

const KEY = ['account_id', 'hour', 'product', 'key_id']
const SUMS = ['requests', 'errors', 'charged', 'input_tokens', 'output_tokens', 'duration_ms']

/** What follows selects these, in this order. */
export const INTO_HOURS = `insert into usage_hour as u (${[...KEY, ...SUMS].join(', ')})`
/** What follows that. */
export const ADDED_UP = `on conflict (${KEY.join(', ')}) do update set ${SUMS.map((name) => `${name} = u.${name} + excluded.${name}`).join(', ')}`
