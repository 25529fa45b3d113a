// The test account of an account: its twin, for keys that begin with `tg_test_`. It is an account like any other (its
// own balance, holds, limits, usage, jobs), so that no rule about money knows of it; what sets it apart is its id,
// which says whose it is. Calls of it reach the simulated vendors only: catalog/store.ts.

const MARK = '_test'

/** The same rule for statements. */
export const IS_TEST = (column: string) => `right(${column}, ${MARK.length}) = '${MARK}'`

export function isTestAccount(account: string): boolean {
  return account.endsWith(MARK)
}

export function testAccountOf(account: string): string {
  return isTestAccount(account) ? account : account + MARK
}

/** Whose account it is: of any other than a test account, its own. */
export function ownAccountOf(account: string): string {
  return isTestAccount(account) ? account.slice(0, -MARK.length) : account
}
