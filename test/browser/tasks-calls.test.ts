// What people ask of calls: which were slow, what is behind a figure; and that lists, totals, charts and files say the
// same.
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { idAtTime } from '../../src/kernel/world.ts'
import { assert, BY, started, test, until } from '../gateway.ts'
import { addFilter, pageOf, startConsole } from './console.ts'
import { settled } from './pages.ts'
import { enter, inDialog, press, steps } from './steps.ts'

const ZONE = 'America/New_York'
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const home = started(startConsole)
const operator = started(() => home.signedIn({ timezoneId: ZONE, locale: 'en-GB' }))
const page = pageOf(operator)

interface Past {
  readonly atMs: number
  readonly key: string
  readonly product: string
  readonly durationMs: number
  readonly vendor?: string
  readonly isFailed?: boolean
}

let made = 0
const micro = (row: Past) => (row.isFailed ? 0 : 1000 + (row.durationMs % 700))

/**
 * Calls as the ledger writes them: each with its row, and the hour's sums with all of them. Answers their request ids.
 */
async function past(account: string, rows: readonly Past[]): Promise<string[]> {
  const { database } = home.gateway
  const ids = rows.map(({ atMs }) => `${idAtTime(atMs)}${String(made++).padStart(16, '0')}`)
  const values = rows.map((row, at) => ({
    id: ids[at],
    key: row.key,
    product: row.product,
    ms: row.durationMs,
    charged: micro(row),
    vendor: row.vendor ?? 'alpha',
    failed: row.isFailed ?? false,
    hour: new Date(Math.floor(row.atMs / HOUR_MS) * HOUR_MS).toISOString(),
  }))
  await database.query(
    {
      text: `with x as (select * from jsonb_to_recordset($2::jsonb) as x(id text, key text, product text, ms int, charged bigint, vendor text, failed boolean, hour timestamptz)),
      made as (insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, duration_ms, route, vendor, attempt_log)
        select $1, id, key, product, 'chat', case when failed then 'released' else 'settled' end, case when failed then 502 else 200 end, charged, 0, 1, '[]', ms, 1, vendor,
          case when failed then '{"heldMs": 1, "attempts": [], "fault": {"name": "upstream_failed", "code": 50000, "status": 502, "blame": "vendor", "message": "The engine is on fire."}}'::jsonb end from x)
      insert into usage_hour as u (account_id, hour, product, key_id, requests, errors, charged, input_tokens, output_tokens, duration_ms)
      select $1, hour, product, key, count(*), count(*) filter (where failed), sum(charged), 0, 0, sum(ms) from x group by hour, product, key
      on conflict (account_id, hour, product, key_id) do update set requests = u.requests + excluded.requests, errors = u.errors + excluded.errors,
        charged = u.charged + excluded.charged, duration_ms = u.duration_ms + excluded.duration_ms`,
    },
    [account, JSON.stringify(values)],
  )
  return ids.map((id) => `req_${id}`)
}

/** The day of a moment where the reader is. */
const dayOf = (ms: number) => new Intl.DateTimeFormat('en-CA', { timeZone: ZONE, dateStyle: 'short' }).format(ms)
/** By the calendar: a day on which clocks change has not 24 hours. */
const daysAgo = (days: number) => new Date(Date.parse(dayOf(Date.now())) - days * DAY_MS).toISOString().slice(0, 10)

const stat = (page: Page, label: string) =>
  page
    .locator('.stat')
    .filter({ has: page.locator('dt', { hasText: new RegExp(`^${label}$`) }) })
    .locator('.stat-value')
const bar = (page: Page) => page.getByRole('search')
const rowsOf = (page: Page) => page.getByRole('table', { name: 'Calls' }).locator('tbody tr')
const wholeNumber = (text: string | null) => Number((/[\d,]+/.exec(text ?? '')?.[0] ?? '').replaceAll(',', ''))

test('the slow calls of one key yesterday: seven clicks, and right among ten thousand', async () => {
  const account = await home.gateway.accounts.create({ name: 'Harbor Books', credits: 100_000_000n }, BY)
  const keys: string[] = []
  for (const name of ['website', 'nightly', 'checkout'])
    keys.push((await home.gateway.keys.create(account, { name }, BY)).id)
  const now = Date.now()
  const rows = Array.from({ length: 10_000 }, (_, n) => ({
    atMs: now - 1000 - Math.floor((n * 3 * DAY_MS) / 10_000),
    key: keys[n % 3] ?? '',
    product: n % 2 ? 'alpha-5.4' : 'beta-opus-5',
    durationMs: (n * 7919) % 5000,
  }))
  const ids = await past(account, rows)
  const yesterday = daysAgo(1)
  const slow = rows
    .map((row, at) => ({ ...row, id: ids[at] ?? '' }))
    .filter(({ atMs, key, durationMs }) => dayOf(atMs) === yesterday && key === keys[1] && durationMs >= 4000)
    .sort((a, b) => b.durationMs - a.durationMs || (a.id < b.id ? 1 : -1))

  await operator.go(`/a/${account}`)
  await page.getByRole('link', { name: 'Usage', exact: true }).locator('visible=true').first().click()
  await bar(page).getByLabel('Period').selectOption('yesterday')
  await addFilter(page, 'Key')
  await bar(page).getByLabel('Key', { exact: true }).selectOption('nightly')
  await addFilter(page, 'Min duration (ms)')
  await bar(page).getByLabel('Min duration (ms)', { exact: true }).fill('4000')
  await page.waitForURL(/minMs=4000/)
  await page.getByRole('button', { name: /^Duration/ }).click()
  await page.waitForURL(/sort=duration/)
  await stat(page, 'Calls').getByText(slow.length.toLocaleString('en'), { exact: true }).waitFor()

  const more = page.getByRole('button', { name: 'Load more' })
  for (let shown = 50; shown < slow.length; shown += 50) {
    await more.click()
    await rowsOf(page)
      .nth(Math.min(shown + 50, slow.length) - 1)
      .waitFor()
  }
  assert.equal(await more.count(), 0)
  const hrefs = await rowsOf(page)
    .locator('.cell-link')
    .evaluateAll((links) => links.map((link) => (link as unknown as { href: string }).href.split('/').at(-1)))
  assert.deepEqual(
    hrefs,
    slow.map(({ id }) => id),
  )
  assert.ok(slow.length > 100)

  // What the bar says stands in the address: whoever opens it sees the same, and so does the file.
  await page.reload()
  await stat(page, 'Calls').getByText(slow.length.toLocaleString('en'), { exact: true }).waitFor()
  assert.equal(await bar(page).getByLabel('Min duration (ms)', { exact: true }).inputValue(), '4000')
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Export calls' }).click(),
  ])
  const lines = (await readFile(await download.path(), 'utf8')).trim().split('\r\n')
  assert.deepEqual(
    lines.slice(1).map((line) => line.split(',')[0]),
    slow.map(({ id }) => id),
  )
  await page.getByRole('link', { name: 'Over time' }).click()
  const totals = page.getByRole('table', { name: 'Totals by group' }).locator('tbody tr')
  await totals.first().waitFor()
  const counts = await totals.locator('td:nth-child(2)').allTextContents()
  assert.equal(
    counts.reduce((sum, text) => sum + wholeNumber(text), 0),
    slow.length,
  )
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await stat(page, 'Calls').getByText('10,000', { exact: true }).waitFor()
})

const chat = (model: string, content = 'Hello') => ({
  model,
  messages: [{ role: 'user', content }],
  max_completion_tokens: 20,
})

/** Two accounts with two weeks of calls, of which some failed. */
async function twoAccounts() {
  const rows = (key: string) =>
    Array.from({ length: 280 }, (_, n) => ({
      atMs: Date.now() - 1000 - Math.floor((n * 14 * DAY_MS) / 280),
      key,
      product: n % 3 ? 'alpha-5.4' : 'beta-opus-5',
      vendor: n % 3 ? 'alpha' : 'beta',
      durationMs: 1 + (n % 100),
      isFailed: n % 20 === 0,
    }))
  const made = []
  for (const name of ['Juniper Clinic', 'Atlas Studio']) {
    const account = await home.gateway.accounts.create({ name, credits: 500_000_000n }, BY)
    const { id: key } = await home.gateway.keys.create(account, { name: `${name} key` }, BY)
    made.push({ account, name, ids: await past(account, rows(key)) })
  }
  return made
}

test('every figure of the overview and of home leads to the calls behind it, and they are as many', async () => {
  const [{ account } = { account: '' }] = await twoAccounts()
  const key = await home.gateway.keys.create(account, { name: 'typo' }, BY)
  await (await home.call('/v1/chat/completions', key.key, chat('no-such-model'))).text()
  await home.gateway.refusals.flush()
  for (const start of [`/a/${account}?period=7d`, '/operator/home?period=7d'])
    for (const label of ['Calls', 'failed', 'rejected']) {
      await operator.go(start)
      await page.getByText('Spend', { exact: true }).first().waitFor()
      const link = page
        .locator('.stats')
        .getByRole('link', { name: label === 'Calls' ? /\(calls: show/ : new RegExp(`^[\\d,]+ ${label}$`) })
      const figure = wholeNumber(await link.textContent())
      assert.ok(figure > 0, `${start} ${label}`)
      await link.click()
      await page.waitForURL(/\/(usage|calls)\?period=7d/)
      await stat(page, 'Calls').getByText(figure.toLocaleString('en'), { exact: true }).waitFor()
      const shown = await rowsOf(page)
        .first()
        .waitFor()
        .then(() => rowsOf(page).count())
      assert.equal(shown, Math.min(50, label === 'rejected' ? shown : figure), `${start} ${label}`)
    }
  await operator.go(`/a/${account}?period=7d`)
  // Model by model against the week before.
  await page
    .getByRole('list', { name: 'Spend by model' })
    .getByText(/calls?, (?:new|[▲▼\d])/)
    .first()
    .waitFor()
  await page.getByRole('list', { name: 'Spend by model' }).getByRole('link', { name: 'beta-opus-5' }).click()
  await page.waitForURL(/product=beta-opus-5/)
  assert.equal(await bar(page).getByLabel('Model', { exact: true }).inputValue(), 'beta-opus-5')

  // So does a bar of a chart: the last one is today's.
  await operator.go(`/a/${account}?period=30d`)
  await page.getByText('Spend', { exact: true }).first().waitFor()
  const chart = page.locator('.chart').nth(1)
  await chart.locator('.chart-frame').focus()
  await page.keyboard.press('End')
  const read = (await chart.locator('.chart-key b').allTextContents()).reduce((sum, text) => sum + Number(text), 0)
  await page.keyboard.press('Enter')
  await page.waitForURL(/usage\?from=.*T/)
  await stat(page, 'Calls').getByText(String(read), { exact: true }).waitFor()
})

test('totals say how they compare with the period before', async () => {
  const account = await home.gateway.accounts.create({ name: 'Orchard', credits: 1_000_000n }, BY)
  const now = Date.now()
  const at = (daysAgo: number, count: number) =>
    Array.from({ length: count }, (_, n) => ({
      atMs: now - daysAgo * DAY_MS - 60_000 - n,
      key: 'console',
      product: 'alpha-5.4',
      durationMs: 5,
    }))
  await past(account, [...at(0, 30), ...at(1, 20)])
  await operator.go(`/a/${account}/usage?period=24h`)
  await page.locator('.stat').filter({ hasText: 'Calls30▲ 50 % vs. before' }).waitFor()
})

test('operators search the calls of all accounts: by request id, message, customer and vendor', async () => {
  const accounts = await twoAccounts()
  const [first] = accounts
  await operator.go('/operator/calls')
  await bar(page)
    .getByLabel('Search')
    .fill(first?.ids[7] ?? '')
  await page.waitForURL(/q=req_/)
  await stat(page, 'Calls').getByText('1', { exact: true }).waitFor()
  await rowsOf(page).filter({ hasText: 'Juniper Clinic' }).waitFor()
  assert.equal(await rowsOf(page).count(), 1)
  // Its page is an operator's, and leads back to the same search.
  await rowsOf(page).getByRole('link').first().click()
  await page.waitForURL(/operator\/calls\/req_/)
  await page.getByRole('navigation', { name: 'Place' }).getByText('Operator').waitFor()
  await page.locator('.back', { hasText: 'Calls' }).click()
  await page.waitForURL(/operator\/calls\?.*q=req_/)
  await stat(page, 'Calls').getByText('1', { exact: true }).waitFor()

  await bar(page).getByLabel('Search').fill('engine is on FIRE')
  await addFilter(page, 'Account')
  await bar(page)
    .getByLabel('Account', { exact: true })
    .selectOption(accounts[1]?.account ?? '')
  await stat(page, 'Failed').getByText('14', { exact: true }).waitFor()
  await page.waitForFunction(() => {
    const { document } = globalThis as unknown as { document: { querySelectorAll(of: string): { length: number } } }
    return document.querySelectorAll('tbody tr').length === 14
  })
  const words = (await rowsOf(page).allTextContents()).join('\n')
  assert.ok(words.includes('Atlas Studio') && !words.includes('Juniper') && !words.includes('acc_'), words)

  await operator.go(`/operator/calls?account=${accounts[0]?.account}&vendor=beta&view=latency&by=vendor&period=30d`)
  const latency = page.getByRole('table', { name: 'Latency' }).locator('tbody tr')
  await latency.first().waitFor()
  assert.deepEqual(await latency.locator('td:first-child').allTextContents(), ['beta'])
})

test('a click on a row shows the call beside the list, and its page is one click further; a phone needs few lines for it', async () => {
  const account = await home.gateway.accounts.create({ name: 'Panels', credits: 1_000_000n }, BY)
  const [id] = await past(account, [{ atMs: Date.now() - 60_000, key: 'console', product: 'alpha-5.4', durationMs: 5 }])
  await operator.go(`/a/${account}/usage?period=24h`)
  await rowsOf(page).getByText('Charged', { exact: true }).click()
  const panel = page.getByRole('dialog', { name: 'alpha-5.4' })
  await panel.getByText(id ?? '').waitFor()
  assert.deepEqual(await home.violations(page), [])
  await page.keyboard.press('Escape')
  await panel.waitFor({ state: 'detached' })
  await page.setViewportSize({ width: 390, height: 844 })
  const { height } = (await rowsOf(page).first().boundingBox()) ?? { height: 0 }
  assert.ok(height > 0 && height < 120, `${height} pixels`)
  await page.setViewportSize({ width: 1280, height: 800 })
  await rowsOf(page).getByText('Charged', { exact: true }).click()
  await panel.getByRole('link', { name: 'Open its page' }).click()
  await page.waitForURL(/usage\/req_/)
})

test('percentiles are those of the calls, by model and by vendor', async () => {
  const account = await home.gateway.accounts.create({ name: 'Percentiles', credits: 1_000_000n }, BY)
  const rows = Array.from({ length: 100 }, (_, n) => ({
    atMs: Date.now() - 60_000 - n * 1000,
    key: 'console',
    product: 'alpha-5.4',
    durationMs: n + 1,
    vendor: n < 50 ? 'alpha' : 'beta',
  }))
  await past(account, rows)
  await operator.go(`/a/${account}/usage?view=latency&period=24h`)
  const cells = (name: string) => page.getByRole('table', { name: 'Latency' }).getByRole('row', { name }).locator('td')
  await cells('alpha-5.4').first().waitFor()
  assert.deepEqual(await cells('alpha-5.4').allTextContents(), ['alpha-5.4', '100', '51 ms', '95 ms', '99 ms'])
  await page.getByLabel('Group by').selectOption('vendor')
  await cells('beta').first().waitFor()
  assert.deepEqual(await cells('alpha').allTextContents(), ['alpha', '50', '26 ms', '48 ms', '50 ms'])
  assert.deepEqual(await cells('beta').allTextContents(), ['beta', '50', '76 ms', '98 ms', '100 ms'])
})

test('a view is saved for a person, found in another browser, and deleted', async () => {
  const account = await home.gateway.accounts.create({ name: 'Views', credits: 1_000_000n }, BY)
  await operator.go(`/a/${account}/usage`)
  await addFilter(page, 'Outcome')
  await bar(page).getByLabel('Outcome', { exact: true }).selectOption('failed')
  await bar(page).getByLabel('Period').selectOption('7d')
  await steps(page, press('Save view'), enter('Name', 'Failed this week'), inDialog(press('Save view')))
  await page.getByRole('button', { name: 'Failed this week', exact: true }).waitFor()
  const elsewhere = await home.visitor()
  await home.logIn(elsewhere, 'op@example.com')
  await elsewhere.go(`/a/${account}/usage`)
  await elsewhere.page.getByRole('button', { name: 'Failed this week', exact: true }).click()
  await elsewhere.page.waitForURL(/outcome=failed&period=7d/)
  assert.equal(await bar(elsewhere.page).getByLabel('Outcome', { exact: true }).inputValue(), 'failed')
  await elsewhere.page.getByRole('button', { name: 'Delete the view Failed this week' }).click()
  await elsewhere.page.getByRole('button', { name: 'Failed this week', exact: true }).waitFor({ state: 'detached' })
  await page.reload()
  await page.getByRole('button', { name: 'Save view' }).waitFor()
  assert.equal(await page.getByRole('button', { name: 'Failed this week', exact: true }).count(), 0)
  await elsewhere.close()
})

/** The names of a chart's legend with their colours. */
const legend = (page: Page, title: string) =>
  page
    .locator('.chart')
    .filter({ has: page.locator('.chart-at', { hasText: new RegExp(`^${title}$`) }) })
    .first()
    .locator('.chart-key')
    .evaluateAll((keys) =>
      keys.map((key) => {
        const { firstElementChild, textContent, lastElementChild } = key as unknown as {
          textContent: string
          firstElementChild: { style: { getPropertyValue(name: string): string } }
          lastElementChild: { textContent: string }
        }
        const name = textContent.slice(0, textContent.length - lastElementChild.textContent.length)
        return [name, firstElementChild.style.getPropertyValue('--series')]
      }),
    )

test('a name has one colour on every page, counts have whole ticks, empty days are shown, and a budget turns amber at 80 %', async () => {
  const [{ account } = { account: '' }] = await twoAccounts()
  await operator.go(`/a/${account}?period=30d`)
  await page.getByText('Spend', { exact: true }).first().waitFor()
  const colors = Object.fromEntries(await legend(page, 'Spend'))
  assert.equal(new Set(Object.values(colors)).size, 2)
  // The order of the bars differs between the measures, the colours do not.
  assert.deepEqual(Object.fromEntries(await legend(page, 'Calls')), colors)
  await operator.go(`/a/${account}/usage?view=chart&sum=calls&product=beta-opus-5`)
  await page.locator('.chart').first().waitFor()
  assert.deepEqual(Object.fromEntries(await legend(page, 'Calls')), { 'beta-opus-5': colors['beta-opus-5'] })

  await operator.go(`/a/${account}?period=30d`)
  const failed = page.locator('.chart').filter({ hasText: 'Failed and rejected calls' })
  await failed.waitFor()
  await settled(page)
  const ticks = await failed.locator('.chart-grid + .chart-text').allTextContents()
  assert.ok(ticks.length > 1 && ticks.every((tick) => /^\d+$/.test(tick)), ticks.join())
  // The calls are of two weeks; the axis is of thirty days, and the first of them is empty.
  const frames = page.locator('.chart-frame')
  const labels = await frames.evaluateAll((all) =>
    all.map((frame) => (frame as unknown as { ariaLabel: string }).ariaLabel.replace(/^[^,]*, /, '')),
  )
  assert.equal(new Set(labels).size, 1, labels.join('\n'))
  // A mouse that an earlier click has left on a chart reads the day below it.
  await page.mouse.move(0, 0)
  await frames.first().focus()
  const first = Date.parse(daysAgo(29))
  const day = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' }).format(first)
  const read = page.getByRole('status').filter({ hasText: day }).filter({ hasText: 'alpha-5.4 0' })
  await until(async () => {
    await page.keyboard.press('Home')
    return (await read.count()) > 0
  })

  const { id, key } = await home.account()
  await home.operator('PATCH', `/accounts/${id}`, { limits: { requestsPerDay: 10 } })
  const fill = page.locator('.fill-track > span')
  for (const [calls, tone] of [
    [7, 'tone-good'],
    [1, 'tone-warn'],
    [2, 'tone-bad'],
  ] as const) {
    for (let at = 0; at < calls; at++) await (await home.call('/v1/chat/completions', key, chat('alpha-5.4'))).text()
    await operator.go(`/a/${id}`)
    await fill.waitFor()
    // What is counted may be shown a moment later.
    await until(async () => {
      if ((await fill.getAttribute('class')) === tone) return true
      await operator.go(`/a/${id}`)
      await fill.waitFor()
      return false
    })
    const style = await fill.evaluate((bar) => {
      const { getComputedStyle } = globalThis as unknown as {
        getComputedStyle(of: unknown): { backgroundColor: string }
      }
      return getComputedStyle(bar).backgroundColor
    })
    if (tone === 'tone-warn') assert.match(style, /oklch\(0\.74 0\.15 75\)/)
  }
})
