// A vendor that the gateway has never seen: tested for real, connected by one command, used and charged; and what the
// test says when something is wrong with it.

import { rm, writeFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { createServer as createSocketServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { examplesIn } from '../../../test/clients/examples.ts'
import { commandLineOf, type Given } from '../../../test/command-line.ts'
import { BY, needs, OPERATOR_TOKEN, testGateway, textOf } from '../../../test/gateway.ts'
import { after, assert, freePort, type Listening, listen, pluck, test } from '../../../test/kit.ts'
import type { AuditView } from '../../database/audit.ts'
import type { Page } from '../../kernel/view.ts'
import type { VendorTest } from '../../routing/views.ts'

const KEY = 'sk-live-0123456789abcdefghij'
const gateway = testGateway({ env: { TOLLGATE_OPERATOR_TOKEN: OPERATOR_TOKEN } })
const closers: Listening['close'][] = []
after(() => Promise.all(closers.map((close) => close())))

async function serve(answering: Parameters<typeof listen>[0]): Promise<string> {
  const { host, close } = await listen(answering)
  closers.push(close)
  return host
}

const json = (res: Parameters<RequestListener>[1], status: number, body: unknown) =>
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

/**
 * A vendor with an address of the usual shape, a key that it checks unless it is asked below /v1/open, and two models.
 */
const strict: RequestListener = (req, res) => {
  const path = req.url ?? ''
  if (!path.startsWith('/v1/')) return json(res, 404, { error: { message: `Unknown path ${path}` } })
  if (!path.startsWith('/v1/open/') && req.headers.authorization !== `Bearer ${KEY}`) {
    const said = `Incorrect API key provided: ${req.headers.authorization}. Find yours at https://vendor.example/keys.`
    return json(res, 401, { error: { message: said, type: 'invalid_request_error', code: 'invalid_api_key' } })
  }
  if (/^\/v1(\/open)?\/models$/.test(path))
    return json(res, 200, { object: 'list', data: [{ id: 'plain-1' }, { id: 'plain-1-mini' }] })
  if (!/^\/v1(\/open)?\/chat\/completions$/.test(path))
    return json(res, 404, { error: { message: `Unknown path ${path}` } })
  const parts: Buffer[] = []
  req.on('data', (part: Buffer) => parts.push(part))
  req.on('end', () => {
    const { model, max_tokens: tokensMax } = JSON.parse(Buffer.concat(parts).toString())
    if (!/^plain-1(-mini)?$/.test(model))
      return json(res, 404, { error: { message: `The model \`${model}\` does not exist`, code: 'model_not_found' } })
    const message = { role: 'assistant', content: 'Hello.' }
    const written = Math.min(2, tokensMax ?? 2)
    const usage = { prompt_tokens: 8, completion_tokens: written, total_tokens: 8 + written }
    json(res, 200, {
      id: 'c1',
      object: 'chat.completion',
      created: 1,
      model,
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage,
    })
  })
}

const modelOf = (uid: string) => gateway.gateway.catalog.current.input.models[uid]

const testOf = (body: object) =>
  gateway.ask<VendorTest>('POST', '/connect/test', { vendor: 'newcomer', formats: ['openai-chat'], ...body })

async function tollgate(args: string[], secrets: Given['secrets'] = {}, ask?: Given['ask']) {
  const { code, all } = await commandLineOf(() => gateway).run(args, { secrets, ask })
  return { code, out: all }
}

test('a vendor that works is tested by listing its models and by the smallest real call, and both are told', async () => {
  const host = await serve(strict)
  const test = await testOf({ baseUrl: `http://${host}/v1`, credential: { value: KEY } })
  assert.equal(test.ok, true)
  assert.deepEqual(test.models, ['plain-1', 'plain-1-mini'])
  assert.deepEqual(
    test.steps.map(({ what, method, address, ok, status, model, inputTokens, outputTokens }) => [
      what,
      method,
      address,
      ok,
      status,
      model,
      inputTokens,
      outputTokens,
    ]),
    [
      ['models', 'GET', `http://${host}/v1/models`, true, 200, null, null, null],
      ['call', 'POST', `http://${host}/v1/chat/completions`, true, 200, 'plain-1', 8, 1],
    ],
  )
})

test('what is wrong with a vendor is said in words: key, model, path, format, refusal, DNS and TLS', async () => {
  const host = await serve(strict)
  const web = await serve((_req, res) =>
    res.writeHead(200, { 'content-type': 'text/html' }).end('<html>Welcome</html>'),
  )
  const mute = await serve(createSocketServer((socket) => socket.destroy()))
  const nobody = `127.0.0.1:${await freePort()}`
  const credential = { value: KEY }
  const cases: [body: object, message: RegExp, suggested?: string][] = [
    [
      { baseUrl: `http://${host}/v1`, credential: { value: 'sk-wrong-0123456789' } },
      /does not accept the credential. It says: “Incorrect API key provided: .*\[key\]/,
    ],
    [
      { baseUrl: `http://${host}/v1`, credential, model: 'plain-1-mimi' },
      /model "plain-1-mimi" is not there. It lists plain-1-mini, plain-1/,
    ],
    [{ baseUrl: `http://${host}`, credential }, /nothing at this address \(404\)/, `http://${host}/v1`],
    [{ baseUrl: `http://${host}/v1/chat/completions`, credential }, /nothing at this address/, `http://${host}/v1`],
    [{ baseUrl: `http://${web}/v1`, credential, model: 'm' }, /answers, but not/],
    [{ baseUrl: `http://${nobody}/v1`, credential }, /connection was refused/],
    [{ baseUrl: `http://${mute}/v1`, credential }, /closed the connection without an answer/],
    [{ baseUrl: 'https://no-such-name.invalid/v1', credential }, /DNS/],
    [{ baseUrl: `https://${host}/v1`, credential }, /^TLS: .*does not support it/],
  ]
  for (const [body, message, suggested] of cases) {
    const { ok, message: said, addressSuggested, steps } = await testOf(body)
    assert.equal(ok, false, said)
    assert.match(said, message)
    assert.equal(addressSuggested, suggested ?? null)
    assert.doesNotMatch(JSON.stringify({ said, steps }), /sk-(live|wrong)-0/)
  }
})

test('a test is written down with its address and the name of the credential, and sends no setting of the gateway', async () => {
  const host = await serve(strict)
  await testOf({ baseUrl: `http://${host}/v1`, credential: { name: 'NEWCOMER_KEY', value: KEY } })
  const { items } = await gateway.ask<Page<AuditView>>('GET', '/audit?action=vendor.test&limit=1')
  assert.equal(items[0]?.object, 'newcomer')
  assert.deepEqual(items[0]?.detail, { baseUrl: `http://${host}/v1`, credential: 'NEWCOMER_KEY' })
  await assert.rejects(
    testOf({ baseUrl: `http://${host}/v1`, credential: { name: 'TOLLGATE_OPERATOR_TOKEN' } }),
    /set TOLLGATE_OPERATOR_TOKEN in the gateway/,
  )
})

test('one command connects a vendor never seen, offers its model at cost times markup, and a customer uses it', async () => {
  const url = `http://${await serve(strict)}/v1`
  const command = ['connect', 'newcomer', '--url', url, '--key-env', 'NEWCOMER_KEY', '--models', 'plain-1=newcomer-one']
  const priced = [...command, '--cost', 'input=100,output=400', '--markup', '1.2']
  const dry = await tollgate([...priced, '--dry-run'], { NEWCOMER_KEY: KEY })
  assert.equal(dry.code, 0, dry.out)
  assert.match(dry.out, /chat\/completions: 200 in \d+ ms\. plain-1 answers: 8 tokens in, 1 out\./)
  assert.match(dry.out, /newcomer-one: 120 credits per million input tokens, cost 100, margin 16\.7 %; 480 credits/)
  assert.match(dry.out, /Nothing was applied/)
  assert.equal(modelOf('newcomer-one'), undefined)

  const done = await tollgate([...priced, '--json'], { NEWCOMER_KEY: KEY })
  assert.equal(done.code, 0, done.out)
  assert.doesNotMatch(done.out, /sk-live/)
  const offered = modelOf('newcomer-one')
  assert.deepEqual(offered?.pricing.tiers, [{ input: '120', output: '480' }])
  assert.deepEqual(offered?.routes[0]?.cost?.tiers, [{ input: '100', output: '400' }])

  const { key, id } = await gateway.account()
  const messages = [{ role: 'user', content: 'Hello' }]
  const answer = await gateway.call('/v1/chat/completions', key, { model: 'newcomer-one', messages })
  assert.equal(answer.status, 200)
  const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] }
  assert.equal(choices[0]?.message.content, 'Hello.')
  // 8 × 120 + 2 × 480, by the million.
  assert.equal(answer.headers.get('x-tollgate-charge'), '0.00192')

  // 8 × 100 + 2 × 400: operators see what the vendor took, at that moment; a dearer cost from now on changes nothing of
  // it.
  const [route] = offered?.routes ?? []
  assert.ok(offered && route)
  route.cost = { unit: 'credits', tiers: [{ input: '999', output: '999' }] }
  await gateway.gateway.catalog.change('newcomer-one', { routes: offered.routes }, BY)
  const rows = await gateway.ask<{ items: { charged: string; cost: string }[] }>('GET', `/accounts/${id}/usage`)
  assert.deepEqual(pluck(rows.items, 'charged', 'cost'), [['0.00192', '0.0016']])
  const { margin } = await gateway.ask<{ margin: object }>('GET', `/accounts/${id}/overview?days=1`)
  const sums = { requests: 1, charged: '0.00192', cost: '0.0016' }
  assert.deepEqual(margin, { ...sums, products: [{ product: 'newcomer-one', ...sums }] })
  const { notes } = await gateway.ask<{ notes: string[] }>('GET', '/catalog')
  assert.match(notes.join(), /newcomer-one, route 1 \(newcomer, openai-chat\) costs more than it is sold for/)
  // A call of a test account, which no real vendor answered, is no figure of the route.
  const { database } = gateway.gateway
  const asTest = `jsonb_build_object('account_id', account_id || '_test', 'id', id || '_test', 'charged', 1000)`
  await database.query(
    { text: `insert into usage select (jsonb_populate_record(u, ${asTest})).* from usage u where account_id = $1` },
    [id],
  )
  const compared = await gateway.ask<{ items: object[] }>('GET', '/models/newcomer-one/routes')
  assert.deepEqual(
    compared.items.map((one) => ({ ...one, firstByteMsP50: 0 })),
    [{ route: 1, answered: 1, failed: 0, firstByteMsP50: 0, chargedAvg: '0.00192', costAvg: '0.0016' }],
  )
  await database.query({ text: 'delete from usage where account_id = $1' }, [`${id}_test`])
  // The caller is told nothing of it.
  const headers = [...answer.headers].filter(([name]) => name !== 'access-control-expose-headers')
  const told = headers.join() + (await (await gateway.call('/v1/account', key)).text())
  assert.doesNotMatch(told, /cost/i)
})

test('the command line changes a vendor and removes it, and names first what no other vendor serves', async () => {
  const set = ['--set', 'timeouts.connectMs=2000']
  const dry = await tollgate(['vendors', 'change', 'newcomer', ...set, '--dry-run'])
  assert.match(dry.out, /Vendor newcomer: connect timeout \(ms\) becomes 2000\.\nNothing was applied\./)
  assert.match((await tollgate(['vendors', 'change', 'newcomer', ...set])).out, /^Version \d+ is in force\./)
  assert.equal((await tollgate(['vendors', 'change', 'newcomer'])).code, 2)
  assert.equal((await tollgate(['vendors', 'change', 'newcomer', '--set', 'a'])).code, 2)
  const wrong = await tollgate(['vendors', 'change', 'newcomer', '--set', 'pendingMax=0', '--dry-run'])
  assert.match(wrong.out, /It would not be valid:\n {2}vendors\.newcomer\.pendingMax/)
  assert.match(
    (await tollgate(['vendors', 'remove', 'newcomer', '--dry-run'])).out,
    /newcomer-one is no longer offered\./,
  )
  const refused = await tollgate(['vendors', 'remove', 'newcomer'])
  assert.equal(refused.code, 1)
  assert.match(refused.out, /No other vendor serves newcomer-one/)
  assert.match((await tollgate(['vendors', 'remove', 'newcomer', '--force'])).out, /Vendor newcomer is removed\./)
  assert.equal(modelOf('newcomer-one'), undefined)
})

test('nothing is applied when the test fails, when a price is missing, or when credential and document do not both hold', async () => {
  const url = `http://${await serve(strict)}/v1`
  const { version } = gateway.gateway.catalog.current
  const wrong = await tollgate(['connect', 'second', '--url', url, '--key-env', 'SECOND_KEY'], {
    SECOND_KEY: 'sk-wrong-0123456789',
  })
  assert.equal(wrong.code, 1)
  assert.match(wrong.out, /does not accept the credential[\s\S]*Nothing was applied/)
  const unpriced = await tollgate(
    ['connect', 'second', '--url', url, '--key-env', 'SECOND_KEY', '--models', 'plain-1'],
    { SECOND_KEY: KEY },
  )
  assert.equal(unpriced.code, 1)
  assert.match(unpriced.out, /no list price noted/)
  const broken = await gateway.call('/admin/v1/connect', OPERATOR_TOKEN, {
    vendor: 'second',
    baseUrl: url,
    formats: ['openai-chat'],
    credential: { name: 'SECOND_KEY', value: KEY },
    models: [{ model: 'plain-1', pricing: { unit: 'credits', tiers: [{ input: '1' }] } }],
  })
  assert.equal(broken.status, 400)
  assert.equal(gateway.gateway.catalog.current.version, version)
  assert.deepEqual(await gateway.sql("select name from credential where name = 'SECOND_KEY'"), [])
})

test(
  'a vendor of the catalog is tested by its cheapest model, and one that nothing routes to is refused',
  needs('probes'),
  async () => {
    const ask = (name: string) =>
      fetch(`${gateway.url}/admin/v1/vendors/${name}/test`, {
        method: 'POST',
        headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
      })
    const { data } = (await (await ask('gamma')).json()) as { data: VendorTest }
    assert.equal(data.ok, true, data.message)
    assert.equal(data.steps[1]?.model, 'gamma-v4-flash')
    assert.equal((await ask('nobody')).status, 404)
  },
)

test(
  'every command of the guide works as it stands, with the simulated vendors at the addresses of the real ones',
  needs('probes'),
  async () => {
    const file = join(tmpdir(), `catalog-${process.pid}.json`)
    const local = `http://${await serve(strict)}/v1`
    const environment = { OPENAI_API_KEY: KEY, MY_VENDOR_KEY: KEY }
    const lines = (await examplesIn('19-vendors.md', 'sh')).flatMap((block) => block.trim().split('\n'))
    assert.ok(lines.length >= 9)
    for (const line of lines) {
      const words = line.replaceAll('catalog.json', file).split(' ').slice(2)
      if (words[1] === 'openai' && words[0] === 'connect') words.push('--url', `${gateway.sandbox.url}/openai`)
      const there = words.map((word) => word.replace('https://api.vendor.example', new URL(local).origin))
      const args = there.map((word) => word.replace('http://127.0.0.1:8080/v1', local.replace('/v1', '/v1/open')))
      const { code, out } = await tollgate(args, environment)
      assert.equal(code, 0, `${line}\n${out}`)
      if (line.includes('catalog check'))
        assert.match(out, /alpha-5\.5, route 1 .* costs more than it is sold for|is valid/)
    }
    await rm(file, { force: true })
  },
)

test('a vendor that costs more than its models are sold for is connected only by whoever says so', async () => {
  const command = ['connect', 'anthropic', '--key-env', 'BETA_KEY', '--url', `${gateway.sandbox.url}/anthropic`]
  command.push('--models', 'claude-fable-5=beta-fable-5')
  const environment = { BETA_KEY: KEY }
  const served = () => gateway.gateway.catalog.current.input.models['beta-fable-5']
  const before = served()
  const LOSS =
    /beta-fable-5, route 1 \(anthropic, anthropic-messages\) costs more than it is sold for: a call of 1000 input/
  const dry = await tollgate([...command, '--dry-run'], environment)
  assert.match(dry.out, LOSS)
  assert.equal(dry.code, 0)
  // Nobody can be asked: refused, with what to say.
  const refused = await tollgate(command, environment)
  assert.equal(refused.code, 1)
  assert.match(refused.out, LOSS)
  assert.match(refused.out, /Nothing was applied\. Give --markup 1\.2 .* or accept the loss with --below-cost\./)
  // Whoever is asked may say no, which is also what an empty line says.
  for (const answer of ['', 'n']) {
    let asked = ''
    const declined = await tollgate(command, environment, async (question) => {
      asked = question
      return answer
    })
    assert.equal(declined.code, 1)
    assert.match(declined.out, LOSS)
    assert.match(asked, /Sell below cost all the same\?/)
  }
  // The operator API has the same rule.
  const models = [{ model: 'claude-fable-5', uid: 'beta-fable-5' }]
  const body = { preset: 'anthropic', baseUrl: `${gateway.sandbox.url}/anthropic`, credential: { value: KEY }, models }
  assert.match(
    await textOf(gateway.call('/admin/v1/connect', OPERATOR_TOKEN, body), 400),
    /sold below cost\. Give \\"markup\\" or prices/,
  )
  assert.deepEqual(served(), before)
  const agreed = await tollgate(command, environment, async (question) => (/below cost/.test(question) ? 'y' : 'n'))
  assert.equal(agreed.code, 0, agreed.out)
  assert.match(agreed.out, /\n\nNext: tollgate call chat "Hi" --model beta-[\w.-]+\n$/)
  assert.equal(served()?.routes[0]?.vendor, 'anthropic')
  assert.deepEqual(served()?.pricing, before?.pricing)
  assert.equal((await tollgate([...command, '--below-cost'], environment)).code, 0)
  const marked = await tollgate([...command, '--markup', '1.2'], environment, async (question) => {
    assert.doesNotMatch(question, /below cost/)
    return ''
  })
  assert.equal(marked.code, 0, marked.out)
  assert.doesNotMatch(marked.out, LOSS)
})

test('a route that costs more than it is sold for is named by the check of the catalog', async () => {
  const file = join(tmpdir(), `loss-${process.pid}.json`)
  const document = structuredClone(gateway.gateway.catalog.current.input)
  const [route] = document.models['gamma-v4-pro']?.routes ?? []
  assert.ok(route)
  route.cost = { unit: 'credits', tiers: [{ input: '174', output: '349' }] }
  await writeFile(file, JSON.stringify(document))
  const { code, out } = await tollgate(['catalog', 'check', file])
  await rm(file, { force: true })
  assert.equal(code, 0, out)
  assert.match(
    out,
    /gamma-v4-pro, route 1 \(gamma, openai-chat\) costs more than it is sold for: a call of 1000 input, 300 output costs 0\.2787 credits and is charged 0\.2784\./,
  )
})

test('whoever connects a real vendor is asked about the simulated models, which go off and come back together', async () => {
  const url = `http://${await serve(strict)}/v1`
  const command = ['connect', 'real', '--url', url, '--key-env', 'REAL_KEY', '--models', 'plain-1=real-one']
  command.push('--cost', 'input=100,output=400')
  const environment = { REAL_KEY: KEY }
  const { key } = await gateway.account()
  const offered = async () => {
    const { data } = (await (await gateway.call('/v1/models', key)).json()) as { data: { id: string }[] }
    return pluck(data, 'id')
  }
  const connect = async (answer?: string) => {
    let asked = ''
    const ask = async (question: string) => {
      asked = question
      return answer ?? ''
    }
    const { code, out } = await tollgate(command, environment, answer === undefined ? undefined : ask)
    assert.equal(code, 0, out)
    return { out, asked }
  }
  assert.match((await connect()).out, /Note: \d+ models and data endpoints are still simulated, such as alpha-5\.4: /)
  const kept = await connect('')
  assert.match(kept.asked, /^Take them off\? \[y\/N\] $/)
  assert.match(kept.out, /They stay on offer/)
  assert.ok((await offered()).includes('alpha-5.4'))
  assert.match((await connect('y')).out, /They are no longer offered/)
  const left = await offered()
  assert.ok(left.includes('real-one') && !left.includes('alpha-5.4'), left.join())
  assert.equal((await gateway.call('/v1/siteanalytics/websites/visits?target=x.example', key)).status >= 400, true)
  assert.doesNotMatch((await connect('y')).out, /simulated/)
  assert.match((await tollgate(['catalog', 'simulated', 'on'])).out, /is offered from version \d+ on/)
  assert.ok((await offered()).includes('alpha-5.4'))
  assert.equal((await tollgate(['catalog', 'simulated', 'perhaps'])).code, 2)
})

test('a configuration of LiteLLM is shown line by line, and applied only when that is asked for', async () => {
  const file = join(import.meta.dirname, '../../../test/fixtures', 'litellm', 'config.yaml')
  const { version } = gateway.gateway.catalog.current
  const shown = await tollgate(['import', 'litellm', file, '--markup', '1.5'])
  assert.equal(shown.code, 0, shown.out)
  assert.match(
    shown.out,
    /^taken {4}model_list\[0\]: gpt-5\.4 is offered as gpt-5\.4, served by openai as gpt-5\.4\.$/m,
  )
  assert.match(shown.out, /^taken {4}model_list\[5\]: voice is offered as voice, served by openai as whisper-1\.$/m)
  assert.match(shown.out, /Nothing was applied/)
  assert.equal(gateway.gateway.catalog.current.version, version)
  const applied = await tollgate(['import', 'litellm', file, '--apply'])
  assert.equal(applied.code, 0, applied.out)
  assert.equal(modelOf('house-llama')?.routes[0]?.vendor, 'ollama-10.1.2.3-11434')
  assert.equal((await tollgate(['import', 'litellm', '/nowhere/config.yaml'])).code, 1)
})
