// What operators and the console are told by a gateway that has worked, against the views that say what they are told.
import OpenAI, { toFile } from 'openai'
import { createAudit } from '../src/database/audit.ts'
import { guardrails as extension } from '../src/extensions/guardrails/extension.ts'
import { createInvoices } from '../src/extensions/sales/invoices/invoices.ts'
import { jobView } from '../src/jobs/views.ts'
import { realWorld } from '../src/kernel/world.ts'
import { ADMIN_PREFIX } from '../src/operator/admin.ts'
import { assert, BY, OPERATOR_TOKEN, pluck, started, startGateway, test, until } from './gateway.ts'
import { ISSUER } from './invoice-shapes.ts'
import { listResources } from './pages/operator-api.ts'

const home = started(() => startGateway({ env: { TOLLGATE_OUTBOUND_ALLOW: '127.0.0.1:1' } }))
// It reads every answer by its view, and throws what it found.

test('everything that an operator can read is what OpenAPI and the types say, once calls and a video have been paid', async () => {
  const { id, key } = await home.account()
  await home.gateway.keys.create(id, { name: 'tests', test: true }, BY)
  await home.sql(`insert into recording_policy (account_id, scope, days, bytes) values ($1, 'account', 1, 1024)`, [id])
  const ask = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello' }] }
  const calls = [
    await home.call('/v1/chat/completions', key, ask, { headers: { 'x-tollgate-session': 'one' } }),
    await home.call('/v1/chat/completions', key, { ...ask, model: 'no-such-model' }),
    await home.call('/v1/video/seedance', key, {
      model: 'videogen-2.0',
      prompt: 'a lighthouse',
      callback_url: 'https://127.0.0.1:1/hook',
    }),
  ]
  assert.deepEqual(pluck(calls, 'status'), [200, 404, 200])
  const { data } = (await calls[2]!.json()) as { data: { jobId: string } }
  await home.settled()
  await home.gateway.opened(extension).contents.flush()
  const deliveries = () => home.sql<{ id: string }>('select id from delivery')
  const delivery = await until(async () => (await deliveries())[0])
  const values: Record<string, string> = {
    delivery: delivery.id,
    version: '1',
    month: new Date().toISOString().slice(0, 7),
    id,
    requestId: calls[0]!.headers.get('x-request-id')!,
    name: 'videogen',
    ...(await oneBatch(key, ask)),
    ...(await onePayment(id)),
    budgetId: await madeBy(`/accounts/${id}/budgets`, { name: 'a', scope: 'key', span: 'day', max: '1' }),
    purse: await madeBy(`/accounts/${id}/purses`, { id: 'ann', credits: '1' }),
  }
  const sold = {
    provider: 'simulated',
    currency: 'EUR',
    pricePerCredit: '1',
    minimum: '1',
    maximum: '9',
    issuer: ISSUER,
  }
  assert.equal((await home.operator('PATCH', `/accounts/${id}/purse-payments`, sold)).status, 200)
  const { data: topUp } = await home.operator<TopUp>('POST', `/accounts/${id}/purses/ann/topups`, { amount: '5' })
  values.topup = topUp.id
  await fetch(topUp.url, { method: 'POST', body: new URLSearchParams({ outcome: 'paid' }), redirect: 'manual' })
  const { data: invoiced } = await home.operator<{ items: { id: string }[] }>(
    'GET',
    `/accounts/${id}/purses/ann/invoices`,
  )
  const [ofPurse] = pluck(invoiced.items, 'id')
  const days = `${values.month}-01`
  const others: Record<string, string> = {
    '/exports': await madeBy('/exports', { name: 'a', kind: 'webhook', settings: { url: 'https://127.0.0.1:1/' } }),
    '/vendor-reports': await madeBy('/vendor-reports', {
      vendor: 'acme',
      source: 'csv',
      from: days,
      to: days,
      creditsPerUnit: '100',
      csv: `day,model,requests\n${days},m,1\n`,
    }),
  }
  const queries: Record<string, string> = {
    '/focus': `?from=${days}&to=${days}`,
    '/accounts/{id}/run': '?run=one',
    '/vendor-reports/{id}/calls': `?day=${days}&model=m`,
  }
  const answered = (await (await home.call(`/v1/jobs/${data.jobId}`, key)).json()) as { data: object }
  assert.deepEqual(jobView.parse(answered.data), answered.data)
  await home.operator('PUT', '/tool-servers/foreign', { url: 'http://127.0.0.1:1/mcp' })
  const readable = listResources().filter(({ method }) => method === 'GET')
  for (const { path } of readable) {
    const [, place = ''] = /^(\/[\w-]+)/.exec(path) ?? []
    const of = {
      ...values,
      ...(others[place] ? { id: others[place] } : {}),
      ...(path.includes('/purses/') ? { invoice: ofPurse } : {}),
      ...(place === '/mails' ? { name: 'confirm' } : {}),
      ...(place === '/tool-servers' ? { name: 'foreign' } : {}),
    }
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => (of as Record<string, string>)[name] ?? name)
    const url = ADMIN_PREFIX + filled + (queries[path] ?? '')
    const response = await home.call(url, OPERATOR_TOKEN)
    assert.equal(response.status, 200, `${url}: ${await response.text()}`)
  }
})

type TopUp = { readonly id: string; readonly url: string }

async function madeBy(path: string, body: object): Promise<string> {
  const { status, data } = await home.operator<{ id: string }>('POST', path, body)
  assert.equal(status, 200, `${path}: ${JSON.stringify(data)}`)
  return data.id
}

/** Something was paid for, with an invoice. */
async function onePayment(account: string): Promise<{ payment: string; invoice: string }> {
  const { database } = home.gateway
  const invoices = createInvoices({ database, world: realWorld, audit: createAudit({ database, world: realWorld }) })
  const address = { street: 'Hauptstraße 1', postcode: '10115', city: 'Berlin', country: 'DE' }
  const issuer = {
    ...address,
    name: 'Gateway GmbH',
    vatId: 'DE123456789',
    taxNumber: null,
    registration: null,
    email: null,
    series: 'INV',
    taxRate: '19',
    ratesAbroad: {},
    exemption: null,
    iban: null,
    bic: null,
    paymentDays: 14,
    footer: null,
  }
  await invoices.changeSettings({ issuer }, BY)
  const details = { ...address, company: null, name: 'Mara', vatId: null, email: null }
  await invoices.changeDetails(account, details, BY)
  const payment = {
    id: 'pay_1',
    currency: 'EUR',
    amountMinor: 2_000n,
    description: '2,200 credits',
    paidAt: new Date(),
  }
  const issued = await database.transaction(async (tx) => {
    const text = `insert into payment (account_id, id, provider, kind, currency, amount_minor, credits, state) values ($1, 'pay_1', 'webhook', 'amount', 'EUR', 2000, 1, 'failed')`
    await tx.query({ text }, [account])
    return invoices.issue(tx, { account, payment })
  })
  assert.ok(issued)
  return { payment: payment.id, invoice: issued.id }
}

/** One line of it is answered, the other is not. */
async function oneBatch(key: string, body: object): Promise<{ batch: string; file: string }> {
  const client = new OpenAI({ apiKey: key, baseURL: `${home.url}/v1` })
  const lines = [body, {}].map((one, at) => ({
    custom_id: `${at}`,
    method: 'POST',
    url: '/v1/chat/completions',
    body: one,
  }))
  const content = Buffer.from(lines.map((line) => JSON.stringify(line)).join('\n'))
  const file = await client.files.create({ file: await toFile(content, 'lines.jsonl'), purpose: 'batch' })
  const order = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' } as const
  const { id } = await client.batches.create(order)
  await until(async () => (await client.batches.retrieve(id)).status, 'completed')
  return { batch: id, file: file.id }
}
