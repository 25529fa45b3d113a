// What `tollgate doctor` says of the analytics store. All else that it examines: src/cli/cli.test.ts.
import { clickHouseLike } from '../../../test/clickhouse-like.ts'
import { commandLineOf } from '../../../test/command-line.ts'
import { assert, OPERATOR_TOKEN, started, test, testGateway, textOf, until } from '../../../test/gateway.ts'

const store = started(clickHouseLike)
const g = testGateway(() => ({
  env: { TOLLGATE_OPERATOR_TOKEN: OPERATOR_TOKEN, TOLLGATE_ANALYTICS_URL: `http://${store.host}/calls` },
}))
const { run } = commandLineOf(() => g)

test('calls that do not reach the analytics store are counted, with the reason, until they do', async () => {
  const said = async () => /^. analytics .*$/m.exec((await run(['doctor'])).out)?.[0] ?? ''
  assert.equal(await said(), `✓ analytics  http://${store.host}/calls has 0 calls; 0 wait to be sent.`)
  store.answers.push(...Array.from({ length: 100 }, () => 'refuse' as const))
  const { key } = await g.account()
  const body = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello!' }] }
  for (let n = 0; n < 2; n++) await textOf(g.call('/v1/chat/completions', key, body))
  await g.settled()
  await until(said, (text) =>
    /^✗ .* has 0 calls; 2 wait to be sent\. It answered with status 500: Code: 241/.test(text),
  )
  store.answers.length = 0
  await until(said, (text) => /^✓ .* has 2 calls; 0 wait to be sent\.$/.test(text))
})
