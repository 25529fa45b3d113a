// Who sees what: members and other accounts, sessions that ended, and text that would like to be a script.
import { assert, BY, before, pluck, started, test } from '../gateway.ts'
import { startNameServer } from '../name-server.ts'
import { PASSWORD, pageOf, startConsole, type Visitor } from './console.ts'
import { EXACT, enter, inDialog, press, see, sight, steps } from './steps.ts'

const XSS = `<img src=x onerror=alert(1)>"'><script>alert(2)</script>{{7*7}}`

let own = ''
let other = ''

const names = started(startNameServer)
const home = started(() => startConsole({ env: { TOLLGATE_DNS_SERVERS: names.address } }))
const operator = started(() => home.signedIn())
const page = pageOf(operator)
before(async () => {
  const { accounts, keys } = home.gateway
  own = await accounts.create({ name: 'Harbor Books', credits: 100_000_000n }, BY)
  other = await accounts.create({ name: 'Quarry Secrets Ltd', credits: 100_000_000n }, BY)
  await keys.create(other, { name: 'quarry key' }, BY)
})

/** A request that the page itself makes, with its cookie. */
async function fetchIn(
  { page }: Visitor,
  path: string,
  options: { method?: string; body?: string; headers?: Record<string, string> } = {},
): Promise<{ status: number; body: string }> {
  return page.evaluate(
    async (asked) => {
      const response = await fetch(asked.path, asked.options)
      return { status: response.status, body: await response.text() }
    },
    { path, options },
  )
}

test('a member invited by link sees the account, and no other by any address', async (t) => {
  await operator.go(`/a/${own}/members`)
  await steps(page, press('Invite', EXACT), enter('Email', 'mara@example.com'), inDialog(press('Invite', EXACT)))
  await page.getByText('Pass this link on').waitFor()
  const link = (await page.getByRole('dialog').locator('pre').textContent()) ?? ''
  assert.ok(link.startsWith(`${home.url}/console/invite#token=`), `the link is ${link}`)

  const member = await home.visitor()
  t.after(() => member.close())
  await member.page.goto(link)
  await steps(member.page, see('Harbor Books'), enter('Password', PASSWORD), press('Accept and sign in'))
  await member.page.getByRole('heading', { name: 'Overview' }).waitFor()
  assert.equal(new URL(member.page.url()).pathname, `/console/a/${own}`)

  await member.go('/actions')
  const offered = await member.page.locator('main code').allInnerTexts()
  assert.ok(offered.includes('POST /accounts/{id}/keys') && offered.includes('PATCH /keys/{id}'), offered.join())
  assert.ok(!offered.includes('POST /accounts'), offered.join())
  for (const part of ['', '/keys', '/usage', '/jobs', '/statement', '/members', '/models', '/playground/chat']) {
    await member.page.goto(`${home.url}/console/a/${other}${part}`)
    await member.page.locator('h1').first().waitFor()
    if (!['/models', '/playground/chat'].includes(part)) await member.page.locator('.fault').first().waitFor()
    assert.ok(!/Quarry|quarry/.test(await member.page.content()), `${part} names the other account`)
  }
  for (const part of ['accounts', `accounts/${other}`, 'catalog', 'vendors', 'live', 'ledger', 'audit', 'system']) {
    await member.go(`/operator/${part}`)
    await member.page.getByText('There is no page at this address').waitFor()
  }

  const asked: [string, { method: string; body: string }?][] = [
    [`/accounts/${other}`],
    [`/accounts/${other}/overview`],
    [`/accounts/${other}/keys`],
    [`/accounts/${other}/usage`],
    [`/accounts/${other}/ledger`],
    [`/accounts/${other}/jobs`],
    [`/accounts/${other}/test-balance`],
    [`/accounts/${other}_test/usage`],
    [`/accounts/${other}/test-balance`, { method: 'PUT', body: '{}' }],
    [`/accounts/${other}/members`],
    [`/accounts/${own}/members`],
    [`/accounts/${own}/webhook-secret`],
    [`/accounts/${other}/play/v1/models`],
    [`/accounts/${other}/keys`, { method: 'POST', body: '{"name":"mine now"}' }],
    [`/accounts/${own}/credits`, { method: 'POST', body: '{"amount":"1000000","note":"thanks"}' }],
    ['/catalog'],
    ['/vendors'],
    ['/audit'],
    ['/requests/live'],
    ['/system'],
    ['/ledger/verify'],
  ]
  for (const [path, init] of asked) {
    const answer = await fetchIn(member, `/console/api${path}`, {
      ...init,
      headers: { 'content-type': 'application/json' },
    })
    assert.equal(answer.status, 403, `${path} answered ${answer.status}`)
    assert.ok(!/quarry/i.test(answer.body))
  }
  // Nor by the way of the playground, or with a key that a member may make.
  const played = await fetchIn(member, `/console/api/accounts/${own}/play/v1/account`)
  assert.equal(played.status, 200)
  assert.ok(!played.body.includes('whsec_'))
  const list = await fetchIn(member, '/console/api/accounts')
  assert.deepEqual(pluck((JSON.parse(list.body) as { data: { items: { id: string }[] } }).data.items, 'id'), [own])
})

test('a customer comes from an invitation to a first call in five clicks', async (t) => {
  await operator.go(`/a/${own}/members`)
  await steps(page, press('Invite', EXACT), enter('Email', 'nils@example.com'), inDialog(press('Invite', EXACT)))
  await page.getByText('Pass this link on').waitFor()
  const link = (await page.getByRole('dialog').locator('pre').textContent()) ?? ''

  const customer = await home.visitor()
  t.after(() => customer.close())
  await customer.page.goto(link)
  await customer.page.getByLabel('Password').fill(PASSWORD)
  let clicks = 0
  const click = async (role: 'button' | 'link', name: string) => {
    clicks++
    await customer.page.getByRole(role, { name, exact: true }).locator('visible=true').last().click()
  }
  await click('button', 'Accept and sign in')
  await customer.page.getByRole('heading', { name: 'Overview' }).waitFor()
  await click('link', 'Keys')
  await customer.page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
  await click('button', 'Create key')
  await customer.page.getByLabel('Name').fill('first')
  await click('button', 'Create key')
  await customer.page.getByText('Your new key').waitFor()
  const key = (await customer.page.getByTestId('key-value').textContent()) ?? ''
  const answer = await home.call('/v1/chat/completions', key, {
    model: 'alpha-5.4',
    messages: [{ role: 'user', content: 'Hello!' }],
  })
  assert.equal(answer.status, 200)
  await customer.go(`/a/${own}`)
  await click('link', 'Usage')
  await customer.page
    .getByRole('table', { name: 'Calls' })
    .getByRole('link', { name: /alpha-5\.4|Alpha 5\.4/ })
    .first()
    .waitFor()
  assert.equal(clicks, 5)
})

test('an owner finds the webhook secret beside the deliveries', async () => {
  await operator.go(`/a/${own}/deliveries`)
  await operator.page.getByRole('button', { name: 'Webhook secret' }).click()
  const shown = operator.page.getByRole('dialog').locator('pre')
  await shown.waitFor()
  assert.match((await shown.textContent()) ?? '', /^whsec_[\w+/]{43}=$/)
  await operator.page.getByRole('button', { name: 'Done' }).click()
})

test('markup in names, prompts and answers stays text on every page that shows it', async () => {
  const { accounts, keys, catalog } = home.gateway
  const account = await accounts.create({ name: XSS, credits: 100_000_000n }, BY)
  const { key } = await keys.create(account, { name: XSS }, BY)
  const document = structuredClone(catalog.current.input)
  document.models['alpha-5.4']!.version = XSS
  await catalog.apply(document, { ...BY, actor: XSS }, XSS)

  await operator.go(`/a/${account}/playground/chat`)
  await steps(page, enter('Message', `Repeat exactly: ${XSS} [a](javascript:alert(3)) ![b](x onerror=alert(4))`, EXACT))
  await steps(page, press('Send'), sight('link', 'Cost breakdown'))
  const answer = page.getByRole('article', { name: /Answer of/ })
  assert.ok(((await answer.textContent()) ?? '').includes('<script>alert(2)</script>'), 'the sandbox echoes the prompt')
  assert.equal(await page.locator('.talk-log img, .talk-log script, .talk-log a[href^="javascript"]').count(), 0)

  await home.call('/v1/chat-completions', key, { model: 'alpha-5.4', messages: [{ role: 'user', content: XSS }] })
  await home.call('/v1/video/seedance', key, { model: 'videogen-2.0', prompt: XSS })
  await home.call(`/v1/social/users?username=${encodeURIComponent(XSS)}`, key)

  const shown: [string, string | RegExp][] = [
    [`/a/${account}`, XSS],
    [`/a/${account}/keys`, XSS],
    [`/a/${account}/usage`, XSS],
    [`/a/${account}/jobs`, XSS],
    [`/a/${account}/statement`, /alpha-5\.4/],
    ['/operator/accounts', XSS],
    [`/operator/accounts/${account}`, XSS],
    ['/operator/catalog/versions', XSS],
    ['/operator/live', /alpha-5\.4/],
    ['/operator/audit', /account/],
  ]
  for (const [path, text] of shown) {
    await operator.go(path)
    await page.getByText(text).locator('visible=true').first().waitFor()
  }
  assert.equal(await page.locator('img[src="x"]').count(), 0)
})

test('Markdown in an answer is shown, and one hundred kilobytes of hostile Markdown do not hang the page', async (t) => {
  const account = await home.gateway.accounts.create({ name: 'Marks Ltd', credits: 100_000_000_000n }, BY)
  await operator.go(`/a/${account}/playground/chat`)
  const answered = async (words: string) => {
    await steps(page, enter('Message', `Repeat exactly: ${words}`, EXACT), press('Send'))
    await page.getByRole('link', { name: 'Cost breakdown' }).waitFor()
    return page.locator('.markdown').last()
  }
  const list = '- one\n  - two\n- [x] three'
  const shown = await answered(
    `# Title\n\n**bold** ~~gone~~ <b>tag</b> ![view](https://p.example/x.png)\n\n${list}\n\n|a|\n|-|\n|b|`,
  )
  const seen = await shown.innerHTML()
  for (const part of [
    '<h3>Title</h3>',
    '<strong>bold</strong> <del>gone</del> &lt;b&gt;tag&lt;/b&gt; <a href="https://p.example/x.png"',
    '<ul><li>one<ul><li>two</li></ul></li><li>☑ three</li></ul>',
    '<th>a</th>',
    '<td>b</td>',
  ])
    assert.ok(seen.includes(part), `${part} is not in ${seen}`)

  await page.evaluate(`new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration)
  }).observe({ entryTypes: ['longtask'] })`)
  /** For how long the page is busy at a stretch, in milliseconds; what is shorter than 50 counts as 50. */
  const busyWith = async (mark: string) => {
    await page.getByRole('button', { name: 'New chat' }).click()
    await page.evaluate('window.longest = 50')
    const answer = await answered(`${mark.repeat(390 / mark.length)} [[tokens=25000]] [[chunks=20]]`)
    assert.ok(((await answer.textContent()) ?? '').length > 20_000)
    return Number(await page.evaluate('window.longest'))
  }
  // Compared with harmless words, because a slow machine is slow with both.
  const harmless = await busyWith('word ')
  for (const mark of ['> *a_', '>', '- > ', '- [ ] )===|a|\n', '**a* ']) {
    const hostile = await busyWith(mark)
    t.diagnostic(`busy for ${hostile} ms at a stretch, with harmless words for ${harmless}`)
    assert.ok(hostile < 30 * harmless, `${mark}: ${hostile} ms, with harmless words ${harmless}`)
  }
})

test('credits whose answer was lost are given once when the form is sent again', async () => {
  const account = await home.gateway.accounts.create({ name: 'Lost Answer Ltd', credits: 100_000_000n }, BY)
  let sent = 0
  await page.route(`**/accounts/${account}/credits`, async (route) => {
    sent += 1
    if (sent > 1) return route.continue()
    await route.fetch()
    return route.fulfill({ status: 408, body: '' })
  })
  await operator.go(`/operator/accounts/${account}`)
  await page.getByRole('button', { name: 'Add credits', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await steps(dialog, enter('Amount', '25'), enter('Note', 'Invoice 7'), press('Add credits'))
  await steps(dialog, see('The gateway answered 408.'), press('Add credits'))
  await page.getByText('The balance is now 125 credits.').waitFor()
  assert.equal(sent, 2)
})

test('an owner proves a mail domain: the page shows the record to set, finds it, lists the domain and removes it', async () => {
  await operator.go(`/a/${own}/members`)
  await page.getByText('No proved domains.').waitFor()
  await page.getByRole('textbox', { name: 'Domain' }).fill('Corp.example')
  await steps(page, press('Check'), see('The record is not there yet.'))
  const [name = '', value = ''] = await page.locator('.card pre').allTextContents()
  assert.equal(name, '_tollgate.corp.example')
  names.records.set(name, value)
  await steps(page, press('Check'), see('corp.example is proved.'), press('Remove corp.example'))
  await page.getByText('No proved domains.').waitFor()
  assert.deepEqual((await home.operator<{ items: object[] }>('GET', `/accounts/${own}/domains`)).data.items, [])
})
