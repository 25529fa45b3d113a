// How often a test tries what it tries: as often as fits into `npm test`, or as often as `npm run chaos` and `npm run
// test:long` do.
export const FULL = process.env.TOLLGATE_TEST_FULL === '1'

export function runs(short: number, full: number): number {
  return FULL ? full : short
}
