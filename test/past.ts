// Credits that moved in months gone by: posted by the ledger as always, and then dated back, in the order in which they
// are given.
import type { Database } from '../src/database/database.ts'
import { idAtTime, newId, realWorld, type World } from '../src/kernel/world.ts'
import type { Ledger } from '../src/ledger/ledger.ts'
import { releaseOf } from '../src/ledger/operation.ts'
import type { Given } from '../src/ledger/views.ts'

interface Past {
  /** `movedMs`: its place in the order of balances, where that is later than its transaction. */
  give(amount: bigint, at: string, more?: { note?: string; kind?: Given; movedAt?: string }): Promise<void>
  /** Began when its id says. Held, settled and posted. */
  call(charge: bigint, at: string, more?: Partial<PastCall>): Promise<void>
  /** The sums of hours are those of the calls. */
  done(): Promise<void>
}

interface PastCall {
  readonly product: string
  readonly key: string
  readonly began: string
  readonly movedAt: string
  readonly cost: bigint
  readonly vendor: string
}

const FACTS = { estimated: false, stream: false, durationMs: 5, firstByteMs: 5, inputTokens: 1, outputTokens: 1 }

export function past(database: Database, ledger: Ledger, account: string): Past {
  async function date(id: string, at: string, movedAt = at): Promise<void> {
    for (const text of [
      `update transfer set at = $3, moved_at = $4::timestamptz + interval '1 microsecond' * (select count(*) from transfer t where t.account_id = $1) where account_id = $1 and id = $2`,
      'update usage set at = $3 where account_id = $1 and id = $2 and $4::timestamptz is not null',
      // What follows finds its place after it, as by the clock of that time.
      `update account set moved_at = (select max(t.moved_at) from transfer t where t.account_id = $1), created_at = least(created_at, $3) where id = $1 and $2 <> '' and $4::timestamptz is not null`,
    ])
      await database.query({ text }, [account, id, at, movedAt])
  }
  return {
    async give(amount, at, { note = 'invoice', kind, movedAt } = {}) {
      const given = await ledger.grant({ account, amount, note, actor: 'test', kind })
      await date(given?.id ?? '', at, movedAt)
    },
    async call(
      charge,
      at,
      { product = 'alpha-5.4', key = 'key_1', began = at, movedAt, cost, vendor = 'textworks' } = {},
    ) {
      const then: World = { ...realWorld, nowMs: () => Date.parse(began) }
      const call = { id: newId(then), account, key, product, catalogVersion: 1, want: charge, floor: charge, tokens: 1 }
      if (call.id < idAtTime(0)) throw new Error('An id of before all time.')
      await ledger.reserve(call)
      await ledger.resolve({
        ...releaseOf(call),
        ...FACTS,
        kind: 'settled',
        charge,
        route: 1,
        vendor,
        status: 200,
        endpoint: 'chat',
        cost,
        lines: [['call', 1, String(charge * 1_000_000n)]] as never,
      })
      await ledger.posted(account)
      await date(call.id, at, movedAt)
    },
    async done() {
      await database.query({ text: 'delete from usage_hour where account_id = $1' }, [account])
      await database.query(
        {
          text: `insert into usage_hour (account_id, hour, product, key_id, requests, errors, charged, input_tokens, output_tokens, duration_ms)
            select account_id, date_trunc('hour', at, 'UTC'), product, key_id, count(*), 0, sum(charged), 0, 0, sum(duration_ms) from usage where account_id = $1 group by 1, 2, 3, 4`,
        },
        [account],
      )
    },
  }
}
