import { join } from 'node:path'
import { assert, test } from './kit.ts'
import { runProgram } from './sdk/cache.ts'

interface Left {
  readonly roster: number
  readonly set: number
  readonly statement: number
  readonly exchange: number
  readonly relayed: number
}

test('calls that are over leave next to nothing for the old generation of the memory', async (t) => {
  const { out, err } = await runProgram(process.execPath, [join(import.meta.dirname, 'left-behind.ts')])
  assert.equal(err, '')
  const left = JSON.parse(out) as Left
  t.diagnostic(`bytes a call: ${out.trim()}`)
  assert.ok(left.roster < 30, `${left.roster} bytes of a member of a roster`)
  assert.ok(left.statement < 200, `${left.statement} bytes of a statement`)
  assert.ok(left.exchange < 60, `${left.exchange} bytes of an exchange with a vendor`)
  assert.ok(left.relayed < 120, `${left.relayed} bytes of a call and its exchange`)
  // If this fails, V8 has mended it, and a set does as well as a roster.
  assert.ok(left.set > 50, `${left.set} bytes of a member of a set`)
})
