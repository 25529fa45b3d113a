// Coming in without a password, in a real browser: by a provider as a person who did not exist before, and by a passkey
// of the browser's own (virtual) authenticator.
import type { Page } from 'playwright-core'
import { assert, BY, before, started, test } from '../gateway.ts'
import { CLIENT_ID, CLIENT_SECRET, startProvider } from '../login-provider.ts'
import { addPasskeyDevice, PASSWORD, startConsole, type Visitor } from './console.ts'
import { EXACT, enter, FIRST, inDialog, press, see, select, steps } from './steps.ts'

const OPERATOR = 'op@example.com'

let operator: Visitor
let account = ''
/** Passkeys belong to a host name, which an address of digits is not. */
let base = ''

const corp = started(startProvider)
const home = started(() =>
  startConsole({
    env: { HOST: 'localhost', TOLLGATE_OUTBOUND_ALLOW: corp.hostAndPort },
    mayHappen: (text) => text.startsWith('request: '), // The provider is another host.
  }),
)
before(async () => {
  base = `${home.url.replace('127.0.0.1', 'localhost')}/console`
  corp.open(new URL(base).origin, 'corp')
  account = await home.gateway.accounts.create({ name: 'Harbor Books', credits: 100_000_000n }, BY)
  operator = await home.visitor()
  const { page } = operator
  await page.goto(`${base}/setup#token=${await home.gateway.people.openSetup()}`)
  await page.getByLabel('Email').fill(OPERATOR)
  await page.locator('input[name=password]').fill(PASSWORD)
  await steps(page, enter('Password again', PASSWORD), press('Create the operator’s login'))
  await page.waitForURL((url) => !url.pathname.endsWith('/setup'))
})

const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).first()

test('from single sign-on to a first call, by a person who did not exist before', async (t) => {
  const { page } = operator
  await page.goto(`${base}/operator/login`)
  await button(page, 'Add a login provider').click()
  const dialog = page.getByRole('dialog')
  await steps(dialog, enter('Name', 'Example Corp', EXACT), enter('Id', 'corp', EXACT), enter('Issuer', corp.issuer))
  await steps(dialog, enter('Client id', CLIENT_ID), enter('Client secret', CLIENT_SECRET))
  await dialog.getByLabel('Domains').fill(`corp.example ${account} member`)
  await steps(dialog, enter('Groups', 'night shift = support', EXACT), press('Save'))
  await dialog.waitFor({ state: 'detached' })
  await page.getByText('corp.example').first().waitFor()
  await button(page, 'Test').click()
  await page.getByText('It answers, and its metadata has everything that is needed.').waitFor()

  corp.people.set('nora', { email: 'nora@corp.example', email_verified: true })
  const visitor = await home.visitor()
  t.after(() => visitor.close())
  const nora = visitor.page
  await nora.goto(`${base}/a/${account}/keys`)
  await button(nora, 'Continue with Example Corp').click()
  await nora.getByLabel('Name').fill('nora')
  await button(nora, 'Sign in').click()
  // Back where they wanted to go, and the code has left the address.
  await nora.getByRole('heading', { name: 'Keys', exact: true }).waitFor()
  assert.equal(nora.url(), `${base}/a/${account}/keys`)
  await nora.goto(`${base}/a/${account}/keys?new=1`)
  await steps(nora, enter('Name', 'first'), inDialog(press('Create key')), see('Your new key'))
  const key = (await nora.getByTestId('key-value').textContent()) ?? ''
  const call = await fetch(`${home.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello' }] }),
  })
  assert.equal(call.status, 200, await call.text())
  // Who has no password accepts an invitation as who they are signed in as; a link for somebody else is not theirs.
  const other = await home.gateway.accounts.create({ name: 'Second Harbor', credits: 0n }, BY)
  const invited = async (email: string) =>
    (await home.operator<{ link: string }>('POST', `/accounts/${other}/invites`, { email, role: 'viewer' })).data.link
  const wrong = (await invited('somebody@corp.example')).split('#token=')[1]
  const taken = await nora.evaluate(
    `fetch('/console/api/invites/${wrong}/join', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }).then(({ status }) => status)`,
  )
  assert.equal(taken, 403)
  await nora.goto((await invited('nora@corp.example')).replace('127.0.0.1', 'localhost'))
  await nora.getByText('You are signed in with this address.').waitFor()
  await button(nora, 'Accept').click()
  await nora.waitForURL((url) => !url.pathname.endsWith('/invite'))
  const joined = await home.sql<{ role: string }>(
    `select m.role from membership m join person p on p.id = m.person_id where m.account_id = $1 and p.email = $2`,
    [other, 'nora@corp.example'],
  )
  assert.deepEqual(joined, [{ role: 'viewer' }])
  // Whom nobody let in is told so, and is nobody afterwards.
  corp.people.set('paul', { email: 'paul@elsewhere.example', email_verified: true })
  const stranger = await home.visitor()
  t.after(() => stranger.close())
  await stranger.page.goto(`${base}/login`)
  await button(stranger.page, 'Continue with Example Corp').click()
  await stranger.page.getByLabel('Name').fill('paul')
  await button(stranger.page, 'Sign in').click()
  await stranger.page.getByText('You have no access yet.').waitFor()
  const [paul] = await home.sql(`select 1 from person where email like 'paul@%'`)
  assert.equal(paul, undefined)
})

test('a token is shown once, works and is revoked; a changed role is felt', async () => {
  const { page } = operator
  await page.goto(`${base}/a/${account}/tokens`)
  await button(page, 'New token').click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name', { exact: true }).fill('deploy')
  await dialog.getByRole('radio', { name: 'Read: keys', exact: true }).check()
  await dialog.getByRole('button', { name: 'Create token' }).click()
  await page.getByText('It is shown once.').waitFor()
  const token = /tg_acc_[\w-]{43}/.exec((await dialog.textContent()) ?? '')?.[0]
  assert.ok(token)
  await steps(dialog, press(/Done|Close|saved|copied/i, FIRST))
  await dialog.waitFor({ state: 'detached' })
  assert.ok(!(await page.content()).includes(token))
  const ask = async (path: string) =>
    (await fetch(`${home.url}/admin/v1/accounts/${account}${path}`, { headers: { authorization: `Bearer ${token}` } }))
      .status
  assert.deepEqual([await ask('/keys'), await ask('/members')], [200, 403])
  await page
    .getByRole('row', { name: /deploy/ })
    .getByRole('button', { name: 'Revoke' })
    .click()
  await dialog.getByRole('button', { name: 'Revoke' }).click()
  await page.getByText('does not work any more').waitFor()
  assert.equal(await ask('/keys'), 401)

  await page.goto(`${base}/a/${account}/members`)
  await button(page, 'Actions for nora@corp.example').click()
  await page.getByRole('menuitem', { name: 'Change role' }).click()
  await steps(dialog, select('Role', 'viewer'), press('Change role'))
  await dialog.waitFor({ state: 'detached' })
  await page
    .getByRole('row', { name: /nora@corp\.example/ })
    .getByText('Viewer')
    .waitFor()
})

test('a passkey signs in by itself, is asked for after the password and before a sensitive act, and an answer counts once', async () => {
  const { page } = operator
  await addPasskeyDevice(operator)
  await page.goto(`${base}/profile`)
  await button(page, 'Add a passkey').click()
  await page.getByLabel('Name').fill('Laptop')
  await button(page, 'Continue').click()
  await page.getByText('Your recovery codes').waitFor()
  const codes = (await page.getByRole('dialog').locator('pre').textContent())?.trim().split('\n') ?? []
  assert.equal(codes.length, 10)
  await button(page, 'I have saved them').click()
  await page.getByText('10 recovery codes left.').waitFor()

  const signOut = async () => {
    await page.goto(`${base}/profile`)
    await button(page, 'Sign out').click()
    await page.waitForURL(/\/login/)
  }
  // By itself. What was sent is kept, and tried again.
  await signOut()
  const sent = page.waitForRequest((request) => request.url().endsWith('/console/api/login/passkey'))
  await button(page, 'Sign in with a passkey').click()
  await page.getByRole('heading', { name: 'Home' }).waitFor()
  const body = (await sent).postData()
  const replayed = await page.evaluate(async (kept) => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } }
    const without = await fetch('/console/api/login/passkey', { ...init, body: kept })
    // Also with a challenge that waits.
    await fetch('/console/api/login/passkey/options', { ...init, body: '{}' })
    const other = await fetch('/console/api/login/passkey', { ...init, body: kept })
    return [without.status, other.status]
  }, body ?? '')
  assert.deepEqual(replayed, [403, 403])

  // After the password.
  await signOut()
  await steps(page, enter('Email', OPERATOR), enter('Password', PASSWORD), press('Sign in', EXACT))
  await page.getByRole('heading', { name: 'Second factor' }).waitFor()
  await button(page, 'Use a passkey').click()
  await page.getByRole('heading', { name: 'Home' }).waitFor()

  // Before a sensitive act, which is then done without being asked for again.
  await home.sql(`update session set proved_at = now() - interval '1 hour'`)
  await page.goto(`${base}/operator/operators`)
  await button(page, 'Invite an operator').click()
  await page.getByLabel('Email').fill('second@example.com')
  await button(page, 'Create link').click()
  await steps(page, see('Confirm that it is you'), press('Use a passkey'), see('Pass this link on'))
  await button(page, 'Done').click()

  // A recovery code instead, in another browser; that session is ended from here.
  const elsewhere = await home.visitor()
  await elsewhere.page.goto(`${base}/login`)
  await steps(elsewhere.page, enter('Email', OPERATOR), enter('Password', PASSWORD), press('Sign in', EXACT))
  await elsewhere.page.getByLabel('Recovery code').fill(codes[0] ?? '')
  await button(elsewhere.page, 'Confirm').click()
  await elsewhere.page.getByRole('heading', { name: 'Home' }).waitFor()
  await page.goto(`${base}/profile`)
  await page.getByText('9 recovery codes left.').waitFor()
  await button(page, 'End').click()
  await page.getByText('The session has ended.').waitFor()
  await elsewhere.page.goto(`${base}/operator/accounts`)
  await elsewhere.page.waitForURL(/\/login/)
  await elsewhere.close()
})
