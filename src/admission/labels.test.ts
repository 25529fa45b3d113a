import { assert, test } from '../../test/kit.ts'
import { account, database } from '../../test/ledger-part.ts'
import { createLabelNames } from './labels.ts'

test('a new label name that many calls use at once, in several processes, is no error', async () => {
  const processes = Array.from({ length: 4 }, () => createLabelNames({ database }))
  for (let round = 0; round < 10; round++) {
    const acc = await account(0n)
    const calls = Array.from({ length: 24 }, (_, at) =>
      processes[at % 4]!.check(acc, { team: String(at), [`n${round}`]: 'x' }),
    )
    for (const call of await Promise.allSettled(calls)) assert.equal(call.status, 'fulfilled', JSON.stringify(call))
  }
})
