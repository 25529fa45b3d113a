// Sentences of the console that somebody acts on: what they say has to be what is.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { idAtTime } from '../../src/kernel/world.ts'
import { OPERATOR_TOKEN } from '../gateway.ts'
import { startConsole, type TestConsole, type Visitor } from './console.ts'

const BY = { actor: 'test', ip: null, requestId: null }

let home: TestConsole
let operator: Visitor

before(async () => {
  home = await startConsole()
  operator = await home.visitor()
  await home.setUp(operator, 'op@example.com')
})

after(() => home?.close())

const chat = (model: string) => ({ model, messages: [{ role: 'user', content: 'Hello' }], max_completion_tokens: 20 })

test('more credits than are available are not taken back: the dialog says how many there are, and asks for those', async () => {
  const { page } = operator
  const id = await home.gateway.accounts.create({ name: 'Juniper Clinic', credits: 380_000_000n }, BY)
  await operator.go(`/operator/accounts/${id}`)
  await page.getByRole('button', { name: 'Credits', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Amount').fill('-100000')
  await dialog.getByLabel('Note').fill('closing')
  await dialog.getByText('Only 380 credits are available.').waitFor()
  assert.equal(await dialog.getByText('Balance afterwards').count(), 0)
  assert.equal(await dialog.getByRole('button', { name: 'Take back', exact: true }).isDisabled(), true)
  await dialog.getByRole('button', { name: 'Take back 380, all that is available' }).click()
  await dialog.getByText('Balance afterwards: 0 credits.').waitFor()
  // Somebody else takes some of it while the dialog is open.
  await home.gateway.accounts.credit(id, { amount: -30_000_000n, note: 'meanwhile' }, BY)
  await dialog.getByRole('button', { name: 'Take back', exact: true }).click()
  await dialog.getByText('Only 350 credits are available, so 380 cannot be taken back. Nothing was taken.').waitFor()
  await dialog.getByRole('button', { name: 'Take back 350, all that is available' }).click()
  await dialog.getByRole('button', { name: 'Take back', exact: true }).click()
  await page.getByText('The balance is now 0 credits.').waitFor()
})

test('the page of a call with an unknown model says which one was asked for, and which one was probably meant', async () => {
  const { page } = operator
  const { id, key } = await home.account()
  const answer = await home.call('/v1/chat/completions', key, chat('beta-haiku-45<b>'))
  assert.equal(answer.status, 404)
  const request = answer.headers.get('x-request-id') ?? ''
  await home.gateway.refusals.flush()
  await operator.go(`/a/${id}/usage/${request}`)
  await page
    .getByText('The model "beta-haiku-45<b>" does not exist or is not enabled. Did you mean "beta-haiku-4-5"?')
    .waitFor()
})

test('the page of a call that went well names its vendor', async () => {
  const { page } = operator
  const { id, key } = await home.account()
  const answer = await home.call('/v1/chat/completions', key, chat('beta-haiku-4-5'))
  await answer.text()
  await home.settled()
  await operator.go(`/a/${id}/usage/${answer.headers.get('x-request-id')}`)
  await page.getByRole('definition').getByRole('link', { name: 'beta', exact: true }).waitFor()
  assert.equal(await page.getByText('number 1 of the model').count(), 0)
})

test('an operator’s bell shows the unread alert of the account on screen, and leaves it unread for its owner', async () => {
  const { page } = operator
  const { id } = await home.account()
  await home.gateway.alerts.test(id)
  await operator.go(`/a/${id}`)
  await page.getByRole('button', { name: 'Alerts, 1 unread' }).click()
  await page.getByRole('region', { name: 'The account on screen' }).getByText('A test').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
  assert.equal((await home.gateway.alerts.list(id, { limit: 1 })).unread, 1)
})

/** Calls of every second before now, the slowest and dearest among the oldest; the last 10 of them failed. */
async function pastCalls(account: string, count: number): Promise<void> {
  await home.gateway.database.query(
    {
      text: `insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, duration_ms)
       select $1, x.id, 'console', 'alpha-5.4', 'chat', case when n <= 10 then 'released' else 'settled' end, case when n <= 10 then 502 else 200 end,
         case when n <= 10 then 0 else n * 1000 end, 0, 1, '[]', 100 + n / 2
       from unnest($2::text[]) with ordinality as x(id, n)`,
    },
    [
      account,
      `{${Array.from({ length: count }, (_, n) => `${idAtTime(Date.now() - (n + 1) * 1000)}${String(n).padStart(16, '0')}`).join()}}`,
    ],
  )
}

test('the slowest call of all is first when usage is sorted by duration, also where it is not among the newest fifty', async () => {
  const { page } = operator
  const { id } = await home.account()
  await pastCalls(id, 120)
  await operator.go(`/a/${id}/usage`)
  await page.getByRole('button', { name: /^Duration/ }).click()
  await page.waitForURL(/sort=duration/)
  await page.getByRole('table', { name: 'Calls' }).locator('tbody tr').first().getByText('160 ms').waitFor()
  await page.getByRole('button', { name: 'Load more' }).click()
  await page.getByRole('table', { name: 'Calls' }).locator('tbody tr').nth(99).waitFor()
})

test('pages of every order hold each call once', async () => {
  const { id } = await home.account()
  await pastCalls(id, 45)
  for (const sort of ['time', 'duration', 'charged'])
    for (const order of ['asc', 'desc']) {
      const seen: string[] = []
      let cursor = ''
      do {
        const path = `/admin/v1/accounts/${id}/usage?sort=${sort}&order=${order}&limit=7${cursor && `&cursor=${cursor}`}`
        const answer = await home.call(path, OPERATOR_TOKEN)
        const { data } = (await answer.json()) as { data: { items: { id: string }[]; next: string | null } }
        seen.push(...data.items.map((row) => row.id))
        cursor = encodeURIComponent(data.next ?? '')
      } while (cursor)
      assert.deepEqual([seen.length, new Set(seen).size], [45, 45], `${sort} ${order}`)
    }
})

test('the outcome filter holds for sums and rows alike, and a row tells when its call began', async () => {
  const { id } = await home.account()
  await pastCalls(id, 30)
  const read = async (path: string) =>
    (await (await home.call(`/admin/v1/accounts/${id}${path}`, OPERATOR_TOKEN)).json()) as any
  for (const by of ['product', 'key', 'status', 'endpoint']) {
    const { data } = await read(`/usage/sums?outcome=released&by=${by}`)
    assert.deepEqual([data.totals.requests, data.totals.errors], [10, 10], by)
  }
  const { data } = await read('/usage?limit=1')
  assert.ok(Date.parse(data.items[0].at) < Date.now() - 900, 'not when the row was written')
})
