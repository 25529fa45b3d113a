// What is available of an account to whoever looks: its balance less what running calls hold. What processes have leased in advance, and no call
// needs, counts as available, because it is given up before a call is refused for the lack of it.

/** What running calls hold of the account in this row of `account`. */
export const HELD = (ROW: string): string =>
  `(${ROW}.held - (select coalesce(sum(greatest(e.amount - e.in_use, 0)), 0) from lease e where e.account_id = ${ROW}.id))::bigint`
