// What people come to the console for, and what it must not get wrong on the way: each answer within three clicks, and
// sentences that somebody acts on say what is.
import type { Page } from 'playwright-core'
import { idAtTime } from '../../src/kernel/world.ts'
import { openedAlerts } from '../alerts.ts'
import { assert, BY, before, OPERATOR_TOKEN, started, test, until } from '../gateway.ts'
import { addFilter, pageOf, startConsole } from './console.ts'
import {
  EXACT,
  enter,
  FIRST,
  goTo,
  inDialog,
  pick,
  press,
  see,
  select,
  sight,
  steps,
  tick,
  touch,
  untick,
} from './steps.ts'

type Ordered = { data: { jobId: string } }

let account = ''

const home = started(startConsole)
const operator = started(() => home.signedIn({ timezoneId: 'America/New_York', locale: 'en-GB' }))
const page = pageOf(operator)
before(async () => {
  account = await home.gateway.accounts.create({ name: 'Harbor Books', credits: 100_000_000n }, BY)
})

const chat = (model: string) => ({ model, messages: [{ role: 'user', content: 'Hello' }], max_completion_tokens: 20 })

test('more credits than are available are not taken back: the dialog says how many there are, and asks for those', async () => {
  const id = await home.gateway.accounts.create({ name: 'Juniper Clinic', credits: 380_000_000n }, BY)
  await operator.go(`/operator/accounts/${id}`)
  await page.getByRole('button', { name: 'Add credits', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await steps(dialog, enter('Amount', '-100000'), enter('Note', 'closing'), see('Only 380 credits are available.'))
  assert.equal(await dialog.getByText('Balance afterwards').count(), 0)
  assert.equal(await dialog.getByRole('button', { name: 'Take back', exact: true }).isDisabled(), true)
  await steps(dialog, press('Take back 380, all that is available'), see('Balance afterwards: 0 credits.'))
  // Somebody else takes some of it while the dialog is open.
  await home.gateway.accounts.credit(id, { amount: -30_000_000n, note: 'meanwhile' }, BY)
  await dialog.getByRole('button', { name: 'Take back', exact: true }).click()
  await dialog.getByText('Only 350 credits are available, so 380 cannot be taken back. Nothing was taken.').waitFor()
  await steps(dialog, press('Take back 350, all that is available'), press('Take back', EXACT))
  await page.getByText('The balance is now 0 credits.').waitFor()
})

test('the page of a call with an unknown model says which one was asked for, and which one was probably meant', async () => {
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
  const { id, key } = await home.account()
  const answer = await home.call('/v1/chat/completions', key, chat('beta-haiku-4-5'))
  await answer.text()
  await home.settled()
  await operator.go(`/a/${id}/usage/${answer.headers.get('x-request-id')}`)
  await page.getByRole('definition').getByRole('link', { name: 'beta', exact: true }).waitFor()
  assert.equal(await page.getByText('number 1 of the model').count(), 0)
})

test('an operator’s bell shows the unread alert of the account on screen, and leaves it unread for its owner', async () => {
  const { id } = await home.account()
  await openedAlerts(home).test(id)
  await operator.go(`/a/${id}`)
  await page.getByRole('button', { name: 'Alerts, 1 unread' }).click()
  await page.getByRole('region', { name: 'The account on screen' }).getByText('A test').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
  assert.equal((await openedAlerts(home).list(id, { limit: 1 })).unread, 1)
})

/** Calls of every second before now, the slowest and dearest among the oldest; the last 10 of them failed. */
async function pastCalls(account: string, count: number): Promise<void> {
  await home.sql(
    `insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, duration_ms)
       select $1, x.id, 'console', 'alpha-5.4', 'chat', case when n <= 10 then 'released' else 'settled' end, case when n <= 10 then 502 else 200 end,
         case when n <= 10 then 0 else n * 1000 end, 0, 1, '[]', 100 + n / 2
       from unnest($2::text[]) with ordinality as x(id, n)`,
    [
      account,
      `{${Array.from({ length: count }, (_, n) => `${idAtTime(Date.now() - (n + 1) * 1000)}${String(n).padStart(16, '0')}`).join()}}`,
    ],
  )
}

test('the slowest call of all is first when usage is sorted by duration, also where it is not among the newest fifty', async () => {
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

test('the only sight of a new key is closed by its own button, not by Escape', async () => {
  await operator.go(`/a/${account}/keys?new=1`)
  await steps(page, enter('Name', 'shop'), inDialog(press('Create key')))
  await page.getByTestId('key-value').waitFor()
  for (let times = 0; times < 3; times++) await page.keyboard.press('Escape')
  assert.equal(await page.getByTestId('key-value').isVisible(), true)
  assert.equal(await page.getByRole('dialog').getByRole('button', { name: 'Close' }).count(), 0)
  await page.getByRole('button', { name: 'I have copied it' }).click()
  await page.getByTestId('key-value').waitFor({ state: 'detached' })
})

test('a key is switched on for the response cache where it is made, and its row says so', async () => {
  await operator.go(`/a/${account}/keys?new=1`)
  await steps(page, enter('Name', 'evaluations'), touch('Restrictions and limits'), select('Response cache', 'on'))
  await steps(page, inDialog(press('Create key')), press('I have copied it'))
  await page
    .getByRole('row', { name: /evaluations/ })
    .getByText('response cache on')
    .waitFor()
  const { items } = await home.gateway.keys.list(account, { cursor: undefined, limit: 10 })
  assert.equal(items.find(({ name }) => name === 'evaluations')?.responseCache, true)
})

test('where the calls of a key go is set on its form, shown again, and changed there', async () => {
  await operator.go(`/a/${account}/keys?new=1`)
  await steps(page, enter('Name', 'kept near'), touch('Restrictions and limits'))
  await steps(page, enter('Allowed vendors', 'alpha, beta'), enter('Allowed regions', 'eu'))
  await steps(page, enter('Highest input price', '300'), enter('Highest output price', '1500'))
  await steps(page, untick('Calls may choose vendors and fallback models'), inDialog(press('Create key')))
  await page.getByRole('button', { name: 'I have copied it' }).click()
  const stored = async () => {
    const { items } = await home.gateway.keys.list(account, { cursor: undefined, limit: 20 })
    return items.find(({ name }) => name === 'kept near')?.routing
  }
  const maxPrice = { input: '300', output: '1500' }
  assert.deepEqual(await stored(), { vendors: ['alpha', 'beta'], regions: ['eu'], maxPrice, callerChoice: false })
  await steps(page, press('Actions for kept near'), pick('Edit'))
  const vendors = page.getByLabel('Allowed vendors')
  if (!(await vendors.isVisible())) await page.getByText('Restrictions and limits').click()
  assert.equal(await page.getByLabel('Calls may choose vendors').isChecked(), false)
  for (const name of ['alpha', 'beta']) await page.getByRole('button', { name: `Remove ${name}` }).click()
  await steps(page, tick('Calls may choose vendors'), inDialog(press('Save')))
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.deepEqual(await stored(), { regions: ['eu'], maxPrice })
})

test('a replaced key says when it ends and answers until then, can be ended now, and is told apart from its successor', async () => {
  const { id, key, last4 } = await home.gateway.keys.create(account, { name: 'till' }, BY)
  const next = await home.gateway.keys.rotate(id, { overlapSeconds: 23 * 3600 }, BY)
  await operator.go(`/a/${account}/usage`)
  await addFilter(page, 'Key')
  const all = page.getByLabel('Key', { exact: true }).locator('option')
  await all.filter({ hasText: next.last4 }).waitFor({ state: 'attached' })
  const options = await all.allTextContents()
  assert.deepEqual(
    options.filter((name) => name.startsWith('till')).sort(),
    [`till (…${last4})`, `till (…${next.last4})`].sort(),
  )
  await operator.go(`/a/${account}/keys`)
  const row = page.getByRole('row', { name: new RegExp(last4) })
  await row.getByText('ends in 23 h').waitFor()
  assert.equal((await home.call('/v1/models', key)).status, 200)
  await row.getByRole('button', { name: 'End now' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'End now' }).click()
  await row.getByText('Replaced', { exact: true }).waitFor()
  assert.equal((await home.call('/v1/models', key)).status, 401)
  assert.equal((await home.call('/v1/models', next.key)).status, 200)
})

test('cancelling is offered while a job waits, and not once it is worked on', async () => {
  const { key } = await home.gateway.keys.create(account, { name: 'films' }, BY)
  const order = async (prompt: string) =>
    ((await (await home.call('/v1/video/seedance', key, { model: 'videogen-2.0', prompt })).json()) as Ordered).data
      .jobId
  const [waiting, working] = [
    await order('A lantern [[queued-ms=60000000]]'),
    await order('A river [[queued-ms=1]] [[stuck]]'),
  ]
  await operator.go(`/a/${account}/jobs/${working}`)
  await page.getByRole('definition').getByText('Processing').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Cancel' }).count(), 0)
  await operator.go(`/a/${account}/jobs/${waiting}`)
  await steps(page, press('Cancel'), see('The job is cancelled.'))
})

test('times say their zone, and the reader chooses it for the whole page', async () => {
  const { key } = await home.gateway.keys.create(account, { name: 'clock' }, BY)
  await (await home.call('/v1/models', key)).text()
  await operator.go(`/a/${account}/statement/movements`)
  const time = page.locator('time').first()
  await time.waitFor()
  assert.match((await time.textContent()) ?? '', / (EST|EDT|GMT-[45])$/)
  assert.match((await time.getAttribute('title')) ?? '', / (EST|EDT|GMT-[45])$/)
  await steps(page, press('Show UTC'), see('Times are in UTC.'))
  for (const one of await page.locator('time').all()) assert.match((await one.textContent()) ?? '', / UTC$/)
  await steps(page, press('Show America/New_York'), see('Times are in America/New_York.'))
})

test('a statement is in the order in which money moved, with balances that stay, and is filtered by kind and day', async () => {
  const id = await home.gateway.accounts.create({ name: 'Books', credits: 10_000_000n, limits: {} }, BY)
  const { key } = await home.gateway.keys.create(id, { name: 'books' }, BY)
  const ask = (content: string) =>
    home.call('/v1/chat/completions', key, { model: 'alpha-5.4', messages: [{ role: 'user', content }] })
  await (await ask('What does it cost?')).text()
  await (await ask('And a failure? [[500]]')).text()
  await home.gateway.accounts.credit(id, { amount: 5_000_000n, note: 'more' }, BY)
  await operator.go(`/a/${id}/statement/movements`)
  const rows = page.getByRole('table').getByRole('row')
  const cells = async () => {
    await page.getByRole('table').waitFor()
    const all = await rows.all()
    return Promise.all(all.slice(1).map(async (row) => (await row.getByRole('cell').allTextContents()).slice(-2)))
  }
  const shown = await cells()
  assert.equal(shown.length, 3, 'what moved nothing is not in it')
  const [, [charge = '', left = ''] = []] = shown
  assert.deepEqual([shown[0]?.[0], shown[2]], ['+5.000000', ['+10.000000', '10.000000']])
  assert.match(charge, /^−0\.\d+$/)
  assert.equal(Number(left.replaceAll(',', '')), Number((10 + Number(charge.replace('−', '-'))).toFixed(6)))
  await page.getByLabel('Transactions').selectOption('Charge')
  await page.getByRole('table').getByText('Credits added').first().waitFor({ state: 'detached' })
  assert.deepEqual(await cells(), [[charge, left]], 'the balance of a row is the same in every list')
  await steps(page, select('Transactions', 'Moved nothing'), see('Hold released', FIRST))
  await operator.go(`/a/${id}/statement/movements?to=2020-01-01`)
  await page.getByText('No transactions match').waitFor()
})

test('audit rows open, and are found by what was done, by whom and to what', async () => {
  const { id } = await home.gateway.keys.create(account, { name: 'audited' }, { ...BY, actor: 'mara@example.com' })
  await operator.go('/operator/audit?action=key&actor=mara%40example.com')
  await page.getByRole('button', { name: /created the key "audited"/ }).click()
  const dialog = page.getByRole('dialog')
  await steps(dialog, see(id, EXACT), sight('cell', 'audited'), press('All about this object'))
  await page.getByLabel('Object', { exact: true }).waitFor()
  assert.equal(await page.getByLabel('Object', { exact: true }).inputValue(), id)
  // The rows of the question before stay until the answer is there.
  await until(() => page.locator('tbody tr').count(), 1)
  await operator.go('/operator/audit?action=key.revoke&actor=mara%40example.com')
  await page.getByText('No rows match').waitFor()
})

test('on a phone a tap shows what a pointer would read, and keeps it', async () => {
  const { key } = await home.gateway.keys.create(account, { name: 'phone' }, BY)
  await home.call('/v1/chat-completions', key, { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello!' }] })
  const phone = await home.visitor({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true })
  await home.logIn(phone, 'op@example.com')
  await phone.go(`/a/${account}`)
  const bars = phone.page.locator('.chart svg').first()
  const box = (await bars.boundingBox())!
  await phone.page.touchscreen.tap(box.x + box.width - 12, box.y + box.height / 2)
  await phone.page.waitForFunction(() => {
    const { document } = globalThis as unknown as { document: { querySelector(path: string): { textContent: string } } }
    return document.querySelector('.chart-at').textContent !== 'Spend'
  })
  await phone.page.locator('.stat-note .amount[title]').first().tap()
  await phone.page
    .locator('.toast')
    .getByText(/credits/)
    .waitFor()
  await phone.close()
})

/** Clicks from the first page of an account; whoever needs a fourth has lost the way. */
async function walk(start: string, ...steps: ((page: Page) => Promise<void>)[]): Promise<Page> {
  await page.goto(`${home.url}/console/a/${start}`)
  await page.locator('h1').first().waitFor()
  assert.ok(steps.length <= 3)
  for (const step of steps) await step(page)
  return page
}
const follow = (name: string | RegExp) => async (page: Page) => {
  await page.getByRole('link', { name }).locator('visible=true').first().click()
}

test('why did this call fail: two clicks from home, with the reason, the advice and the attempts', async () => {
  const made = await home.account()
  await home.call('/v1/chat-completions', made.key, {
    model: 'gamma-v4-pro',
    max_tokens: 321,
    messages: [{ role: 'user', content: 'Hello [[503]]' }],
  })
  const page = await walk(made.id, follow('Usage'), follow(/gamma-v4-pro/))
  const story = page.getByRole('region', { name: 'What went wrong' })
  await steps(story, see('The vendor is not available right now.'), see(/answered HTTP 503/))
  await story.getByText(/What to do: Wait for/).waitFor()
  const code = story.getByRole('link', { name: /Vendor unavailable/ })
  assert.equal(await code.getAttribute('href'), '/docs/reference/errors#upstream_unavailable')
  await page.getByRole('region', { name: 'Where the time went' }).getByText('Admission and hold').waitFor()
  const asked = page.getByRole('region', { name: 'Request', exact: true })
  await steps(asked, see('321', EXACT), goTo('gamma', EXACT))
  await page.getByRole('heading', { level: 1, name: 'gamma' }).waitFor()
  await page.goBack()
  await asked.waitFor()
  const words = (await page.locator('main').textContent()) ?? ''
  assert.ok(!/Route 0|First byte0 ms|first byte0 ms/i.test(words), words)
  assert.deepEqual(await home.violations(page), [])
})

test('what did it cost: two clicks from home, with its arithmetic', async () => {
  const made = await home.account()
  const answer = await home.call('/v1/chat-completions', made.key, {
    model: 'alpha-5.4',
    messages: [{ role: 'user', content: 'Hello!' }],
  })
  const charge = answer.headers.get('x-tollgate-charge')!
  const page = await walk(made.id, follow('Usage'), follow(/alpha-5\.4/))
  await page.getByText('How the charge was calculated').waitFor()
  assert.equal(await page.locator('.sum b').textContent(), charge)
})

test('which vendor is ill: one click from the operator’s home, the worst first', async () => {
  const made = await home.account()
  for (let times = 0; times < 4; times++)
    await home.call('/v1/chat-completions', made.key, {
      model: 'gamma-v4-pro',
      messages: [{ role: 'user', content: 'Hello [[500]]' }],
    })
  const page = await walk(made.id, follow('Operator'), follow('Vendors'))
  const first = page.getByRole('table', { name: 'Vendors' }).locator('tbody tr').first()
  await steps(first, sight('link', 'gamma'), see(/^(Circuit (open|half-open)|Degraded)/))
})

test('which key spends most this week: two clicks from home', async () => {
  const made = await home.account()
  const dear = await home.gateway.keys.create(made.id, { name: 'the dear one' }, BY)
  const ask = (key: string, model: string) =>
    home.call('/v1/chat-completions', key, { model, messages: [{ role: 'user', content: 'Hello!' }] })
  for (const model of ['beta-opus-5', 'beta-opus-5', 'alpha-5.4']) await ask(dear.key, model)
  await ask(made.key, 'alpha-5.4')
  const page = await walk(made.id, follow('Keys'), (on) => on.getByRole('button', { name: /^Spent in 7 days/ }).click())
  const first = page.getByRole('row').nth(1)
  await steps(first, see('the dear one', EXACT), sight('link', /^3 *calls of the dear one$/))
})

test('is my balance about to end: one click from home, and said on every page when it has', async () => {
  const made = await home.account({ credits: 2_000_000n })
  const ask = () =>
    home.call('/v1/chat-completions', made.key, {
      model: 'alpha-5.4',
      max_tokens: 500,
      messages: [{ role: 'user', content: 'Hello!' }],
    })
  assert.equal((await ask()).status, 200)
  const page = await walk(made.id, follow('Overview'))
  const lasts = page.locator('.stat').filter({ hasText: 'Available' })
  assert.match((await lasts.textContent()) ?? '', /lasts \d+ days?/)

  for (let status = 200; status === 200; ) status = (await ask()).status
  await page.reload()
  const banner = page.locator('.banner')
  await steps(banner, see(/calls that may cost more are rejected with HTTP 402/), goTo('See rejected calls'))
  // Refusals are written together, a moment later.
  await page.getByRole('button', { name: 'Auto-refresh' }).click()
  await page.getByRole('row').getByText('Rejected · Not enough credits').first().waitFor()
  await page.getByRole('row').getByRole('link').first().click()
  await page.getByText('The gateway rejected the call before anything was held').waitFor()
  const words = (await page.locator('main').textContent()) ?? ''
  assert.ok(!/0 ms|hold went back/.test(words), words)
})

test('an invitation is listed until it is withdrawn, and a second operator can be made', async () => {
  await operator.go('/operator/operators')
  await steps(page, press('Invite an operator'), enter('Email', 'second@example.com'), press('Create link'))
  const link = (await page.getByRole('dialog').locator('pre').textContent()) ?? ''
  await page.getByRole('button', { name: 'Done' }).click()
  const row = page.getByRole('row', { name: /second@example\.com/ })
  await row.getByRole('button', { name: 'Withdraw' }).click()
  await row.waitFor({ state: 'detached' })
  const stranger = await home.visitor()
  await stranger.page.goto(link)
  await stranger.page.locator('.fault').waitFor()
  await stranger.close()
})

test('Ctrl K finds a page, a model, a key of any account and a call by its id, by what the server finds', async () => {
  const { key, last4, id } = await home.gateway.keys.create(account, { name: 'checkout' }, BY)
  const answer = await home.call('/v1/chat-completions', key, {
    model: 'alpha-5.4',
    messages: [{ role: 'user', content: 'Hello!' }],
  })
  await operator.go(`/a/${account}`)
  const find = async (words: string, name: string | RegExp) => {
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: /^Find/ }).fill(words)
    await page.getByRole('option', { name }).first().waitFor()
    await page.keyboard.press('Enter')
  }
  await find('webhook secret', /Deliveries/)
  await page.waitForURL((url) => url.pathname.endsWith(`/a/${account}/deliveries`))
  await find('beta-opus', /Opus/)
  await page.waitForURL((url) => url.pathname.includes('/models/beta-opus'))
  await find(last4, /checkout/)
  await page.waitForURL((url) => url.searchParams.get('key') === id)
  await find(answer.headers.get('x-request-id')!, /call/)
  await page.getByText('How the charge was calculated').waitFor()
  const other = await home.account()
  const elsewhere = await home.gateway.keys.create(other.id, { name: 'of another account' }, BY)
  await find('of another acc', /of another account/)
  await page.waitForURL((url) => url.pathname.includes(other.id) && url.searchParams.get('key') === elsewhere.id)
})

const NO_MODEL = { model: 'no-such-model', messages: [{ role: 'user', content: 'Hello!' }] }

test('a key has a page with its id, its limits, what it spent and its last error, and is changed there', async () => {
  const { key, id } = await home.gateway.keys.create(account, { name: 'kiosk', limits: { requestsPerMinute: 30 } }, BY)
  assert.equal((await home.call('/v1/chat/completions', key, NO_MODEL)).status, 404)
  await operator.go(`/a/${account}/keys`)
  await steps(page, goTo('kiosk', EXACT), sight('heading', 'kiosk'), see(id, EXACT))
  await page.getByRole('region', { name: 'What it may do' }).getByText('30').first().waitFor()
  assert.deepEqual(await home.violations(page), [])
  await steps(page, press('Actions for kiosk'), pick('Edit'), inDialog(enter('Name', 'kiosk 2'), press('Save')))
  await page.getByRole('heading', { name: 'kiosk 2' }).waitFor()
})
