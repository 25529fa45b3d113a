// How a call ended, as the ledger is told.
import type { Resolution } from '../src/ledger/operation.ts'

export const settlement = (
  account: string,
  id: string,
  charge: bigint,
  more: Partial<Resolution> = {},
): Resolution => ({
  id,
  account,
  key: 'k1',
  product: 'alpha-5.4',
  catalogVersion: 1,
  kind: 'settled',
  charge,
  lines: charge > 0n ? [['output', Number(charge), '1000000']] : [],
  endpoint: 'chat',
  status: 200,
  estimated: false,
  stream: false,
  route: 1,
  durationMs: 5,
  firstByteMs: 2,
  inputTokens: 4,
  outputTokens: 6,
  ...more,
})

/** One that no vendor answered. */
export const release = (account: string, id: string, more: Partial<Resolution> = {}): Resolution =>
  settlement(account, id, 0n, { kind: 'released', status: 500, route: 0, inputTokens: 0, outputTokens: 0, ...more })
