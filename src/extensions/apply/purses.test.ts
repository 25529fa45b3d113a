// What `tollgate apply` says and does of purses: the prices for customers, and where an account is told.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { OPERATOR_TOKEN, startGateway } from '../../../test/gateway.ts'
import { temporary } from '../../../test/started.ts'
import { runCli } from '../../cli/run.ts'
import { realWorld } from '../../kernel/world.ts'

const folder = temporary('tollgate-apply-purses-')
const file = join(folder, 'tollgate.yaml')

async function apply(url: string, ...options: string[]) {
  const out: string[] = []
  const err: string[] = []
  const code = await runCli({
    args: ['apply', ...options],
    world: realWorld,
    otherVerbs: [],
    settings: () => ({
      ...{ url, urlSource: 'from a test', token: OPERATOR_TOKEN, apiKey: undefined, tokenSource: 'a test' },
      ...{ dataDirectory: folder, databaseUrl: undefined, publicUrl: undefined, trustProxy: '', host: '127.0.0.1' },
      ...{ codexHome: folder, server: undefined, version: '0.0.0-test', credential: () => undefined },
    }),
    terminal: { out: (text) => void out.push(text), err: (text) => void err.push(text), input: async () => '' },
  })
  return { code, out: out.join(''), err: err.join('') }
}

const declared = (purses: string) => `tollgate: 1\naccounts:\n  - name: Shop\n    purses: ${purses}\n`

test('prices for customers and the address of events are applied, found applied, exported and refused with the reason', async () => {
  await using g = await startGateway()
  const both = declared(
    '{ prices: { markupPercent: 20, models: [{ model: alpha-5.5, prices: [{ output: 2000, upTo: 10, input: "400.0" }, { input: 500 }] }, { model: alpha-*, markupPercent: 30 }] }, events: { url: "https://hooks.example/secret-77" } }',
  )
  await writeFile(file, both)
  const made = await apply(g.url, file, '--yes')
  assert.equal(made.code, 0, made.err)
  assert.match(
    made.err,
    /Shop: its customers pay 20 % on what it pays, with rules of their own for alpha-5\.5, alpha-\*\./,
  )
  assert.match(made.err, /Shop: events of its purses go to hooks\.example\./)
  assert.ok(!`${made.out}${made.err}`.includes('secret-77'))
  const { items } = (await g.operator<{ items: { id: string; name: string }[] }>('GET', '/accounts?limit=200')).data
  const account = items.find(({ name }) => name === 'Shop')
  const at = `/accounts/${account?.id}/purse-prices`
  const prices = async () => (await g.operator<{ version: number; models: { model: string }[] }>('GET', at)).data
  assert.deepEqual((await prices()).models, [
    { model: 'alpha-5.5', prices: [{ upTo: 10, input: '400', output: '2000' }, { input: '500' }] },
    { model: 'alpha-*', markupPercent: '30' },
  ])
  assert.match((await apply(g.url, file, '--yes')).out, /Nothing differs/)
  // The first rule that fits counts, so that another order is another list.
  await writeFile(file, both.replace(/models: \[(.*\]) \}, (\{ model: alpha-\*.*?\})\]/, 'models: [$2, $1 }]'))
  assert.equal((await apply(g.url, file, '--dry-run')).code, 2)
  await writeFile(file, declared('{ events: { url: null } }'))
  assert.equal((await apply(g.url, file, '--yes')).code, 0)
  assert.equal((await prices()).version, 1)
  const exported = await apply(g.url, '--export')
  assert.match(exported.out, /purses:\n {6}prices:\n {8}markupPercent: "20"\n {8}models:\n {10}- model: alpha-5\.5/)
  await writeFile(file, exported.out)
  assert.match((await apply(g.url, file, '--yes')).out, /Nothing differs/)
  for (const [wrong, said] of [
    ['{ prices: { markup: 20 } }', /no field "markup" here; it takes markupPercent/],
    ['{ prices: { markupPercent: much } }', /must be a percentage/],
    ['{ prices: { models: [{ model: nothing, markupPercent: 1 }] } }', /there is no model "nothing"/],
  ] as const) {
    await writeFile(file, declared(wrong))
    const { code, err } = await apply(g.url, file, '--yes')
    assert.deepEqual([code, said.test(err)], [1, true], err)
  }
})

test('an export of a gateway without purses has none', async () => {
  await using g = await startGateway({ env: { TOLLGATE_EXTENSIONS_OFF: 'purses' } })
  await g.account()
  const { code, out, err } = await apply(g.url, '--export')
  assert.deepEqual([code, /purses:/.test(out)], [0, false], err)
})
