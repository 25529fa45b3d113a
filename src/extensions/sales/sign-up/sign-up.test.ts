// Sign-up, confirmation by mail, forgotten passwords and one's own deletion, with a real mail server; and whoever tries
// to misuse them.
import { text } from 'node:stream/consumers'
import { startGateway } from '../../../../test/gateway.ts'
import { assert, beforeEach, listen, pluck, started, test, until, words } from '../../../../test/kit.ts'
import { startMailServer } from '../../../../test/mail-server.ts'
import type { WhoView } from '../../../identity/views.ts'
import type { Page } from '../../../kernel/view.ts'
import type { AccountView } from '../../../ledger/views.ts'

const PASSWORD = 'seven tired otters juggle'

const asked: Array<{ body: Record<string, unknown>; signature: unknown }> = []
let answer: readonly [status: number, body: string] = [200, '{"action":"allow"}']
/** Whom the gateway asks before it sends a mail, if it is set so. */
const hook = started(() =>
  listen(async (request, response) => {
    asked.push({ body: JSON.parse(await text(request)), signature: request.headers['webhook-signature'] })
    response.writeHead(answer[0]).end(answer[1])
  }),
)
const post = started(startMailServer)
const g = started(() =>
  startGateway({
    env: {
      TOLLGATE_SMTP_URL: post.url,
      TOLLGATE_MAIL_FROM: 'Tollgate <hello@gateway.example>',
      TOLLGATE_TRUST_PROXY: '127.0.0.1',
      TOLLGATE_OUTBOUND_ALLOW: hook.host,
    },
  }),
)
beforeEach(async () => {
  await g.sql('delete from login_attempt')
  await configure({ mode: 'open' })
})

interface Answer<T = unknown> {
  readonly status: number
  readonly data: T
  readonly message: string
  readonly text: string
  readonly headers: Headers
}

/** A browser at an address of its own, with its cookies. */
function browser(ip = '203.0.113.1') {
  let cookie = ''
  return async <T = unknown>(method: string, path: string, body?: unknown): Promise<Answer<T>> => {
    const response = await fetch(`${g.url}/console/api${path}`, {
      method,
      headers: {
        'sec-fetch-site': 'same-origin',
        'x-forwarded-for': ip,
        ...(cookie ? { cookie } : {}),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    for (const set of response.headers.getSetCookie()) if (set.startsWith('__Host-tg_s=')) cookie = set.split(';')[0]!
    const text = await response.text()
    const json = JSON.parse(text)
    return {
      status: response.status,
      data: json.data,
      message: json.error?.message ?? '',
      text,
      headers: response.headers,
    }
  }
}

const OPEN = { mode: 'open' }
async function configure(settings: Record<string, unknown>) {
  const { status, data } = await g.operator('PUT', '/sign-up', settings)
  assert.equal(status, 200, JSON.stringify(data))
}

const sql = <T extends object>(text: string, values: string[] = []) => g.sql<T>(text, values)

async function signUp(email: string, input: Record<string, unknown> = {}, ip?: string) {
  const visitor = browser(ip)
  const asked = await visitor('POST', '/public/sign-up', { email })
  assert.equal(asked.status, 200, asked.text)
  const mail = await post.newest(email)
  const person = browser(ip)
  const done = await person('POST', `/public/sign-up/${mail.token}`, { password: PASSWORD, ...input })
  assert.equal(done.status, 200, done.text)
  const { data } = await person<WhoView>('GET', '/session')
  return { person, mail, account: data.accounts[0]!.id, id: data.user.id }
}

test('sign-up is off until an operator turns it on', async () => {
  await g.control.query({ text: `delete from setting where name = 'sign-up'` })
  const visitor = browser()
  assert.equal((await visitor<{ mode: string }>('GET', '/public/sign-up')).data.mode, 'off')
  assert.equal((await visitor('POST', '/public/sign-up', { email: 'new@example.com' })).status, 403)
  assert.equal((await g.operator('POST', '/sign-up/invites', { email: 'new@example.com' })).status, 409)
})

test('who confirms by the mail gets a login, an account with credits and limits, and has accepted the terms', async () => {
  const terms = { version: '2026-11', url: 'https://terms.example/' }
  await configure({ mode: 'open', credits: '25', limits: { requestsPerMinute: 7 }, terms })
  const visitor = browser()
  const asked = await visitor('POST', '/public/sign-up', { email: 'Ada@Example.com' })
  assert.deepEqual([asked.status, asked.data], [200, { sent: true }])
  const mail = await post.newest('ada@example.com')
  assert.equal(mail.headers.get('subject'), 'Confirm your email address for Tollgate')
  assert.match(mail.headers.get('from') ?? '', /hello@gateway\.example/)
  assert.ok(mail.html.includes(`/console/sign-up#token=${mail.token}"`), 'the HTML has the same link')
  // Another browser than the one that asked: a link in a mail is often opened on a phone.
  const phone = browser('198.51.100.7')
  assert.deepEqual((await phone('GET', `/public/sign-up/${mail.token}`)).data, { email: 'ada@example.com', terms })
  const finish = (input: object) => phone('POST', `/public/sign-up/${mail.token}`, { password: PASSWORD, ...input })
  assert.match((await finish({})).message, /accept the terms/)
  assert.match((await finish({ terms: '2025-01' })).message, /accept the terms/)
  assert.match((await finish({ terms: '2026-11', password: 'short' })).message, /at least 12/)
  assert.equal((await finish({ terms: '2026-11', name: 'Ada & Co' })).status, 200)
  const { data: who } = await phone<WhoView>('GET', '/session')
  assert.deepEqual(pluck(who.accounts, 'name', 'role'), [['Ada & Co', 'owner']])
  const { data: account } = await g.operator<AccountView>('GET', `/accounts/${who.accounts[0]!.id}`)
  assert.deepEqual([account.balance, account.limits], ['25', { requestsPerMinute: 7 }])
  const [person] = await sql<{ terms_version: string }>(
    `select terms_version from person where email = 'ada@example.com'`,
  )
  assert.equal(person?.terms_version, '2026-11')
  assert.equal((await finish({ terms: '2026-11' })).status, 404, 'the link works once')
  assert.deepEqual(await g.problems(true), [])
})

test('two confirmations of one link at once make one account', async () => {
  await configure({ mode: 'open', credits: '5' })
  await browser()('POST', '/public/sign-up', { email: 'twice@example.com' })
  await browser()('POST', '/public/sign-up', { email: 'twice@example.com' })
  await post.newest('twice@example.com', 2)
  const tokens = post.to('twice@example.com').flatMap(({ token }) => [token, token])
  const tries = await Promise.all(
    tokens.map((token, i) => browser(`203.0.113.${i}`)('POST', `/public/sign-up/${token}`, { password: PASSWORD })),
  )
  assert.deepEqual(pluck(tries, 'status').sort(), [200, 404, 404, 404].sort(), tries.map(({ text }) => text).join())
  const [count] = await sql<{ people: number; credits: number }>(
    `select (select count(*)::int from person where email = 'twice@example.com') as people,
       (select count(*)::int from account where name = 'twice@example.com') as credits`,
  )
  assert.deepEqual(count, { people: 1, credits: 1 })
})

test('an expired link, and one that was made before sign-up was closed, open nothing', async () => {
  await browser()('POST', '/public/sign-up', { email: 'late@example.com' })
  const { token } = await post.newest('late@example.com')
  await configure({ mode: 'off' })
  assert.equal((await browser()('POST', `/public/sign-up/${token}`, { password: PASSWORD })).status, 403)
  await configure({ mode: 'open', blockedDomains: ['example.com'] })
  assert.equal((await browser()('POST', `/public/sign-up/${token}`, { password: PASSWORD })).status, 400)
  await configure(OPEN)
  await sql(`update invite set expires_at = now() - interval '1 second' where email = 'late@example.com'`)
  assert.equal((await browser()('GET', `/public/sign-up/${token}`)).status, 404)
  assert.equal((await browser()('POST', `/public/sign-up/${token}`, { password: PASSWORD })).status, 404)
  assert.equal((await sql(`select 1 from person where email = 'late@example.com'`)).length, 0)
})

test('a sign-up link is no invitation, and a password link opens no account', async () => {
  await browser()('POST', '/public/sign-up', { email: 'kinds@example.com' })
  const { token } = await post.newest('kinds@example.com')
  assert.equal((await browser()('GET', `/invites/${token}`)).status, 404)
  assert.equal((await browser()('POST', `/invites/${token}`, { password: PASSWORD })).status, 404)
  const { person } = await signUp('kinds2@example.com')
  await person('POST', '/public/password', { email: 'kinds2@example.com' })
  const reset = await post.newest('kinds2@example.com', 2)
  assert.equal((await browser()('POST', `/public/sign-up/${reset.token}`, { password: PASSWORD })).status, 404)
})

test('answers say nothing about whether an address is known, and neither does their time', async () => {
  await signUp('known@example.com')
  const ask = async (path: string, email: string) => {
    const { status, text, headers } = await browser()('POST', path, { email })
    return [status, text.replace(/"requestId":"[^"]+"/, ''), [...headers.keys()].sort().join()]
  }
  // Nothing that differs can be done while these tables are locked: the answers come all the same.
  await g.control.transaction(async (tx) => {
    await tx.query({ text: 'lock table person, invite, delivery in access exclusive mode' })
    for (const path of ['/public/sign-up', '/public/password'])
      assert.deepEqual(await ask(path, 'known@example.com'), await ask(path, 'unknown@example.com'))
  })
  assert.equal((await post.newest('known@example.com', 3)).to.length, 1)
  const subjects = post.to('known@example.com').map(({ headers }) => headers.get('subject'))
  assert.deepEqual(subjects.slice(1).sort(), [
    'Choose a new password for Tollgate',
    'You already have a login at Tollgate',
  ])
  await g.gateway.asked.idle()
  const text = `select event from delivery where shown = 'unknown@example.com' order by id`
  const rows = await g.control.query<{ event: string }>({ text })
  assert.deepEqual(rows, [{ event: 'person.confirm' }], 'a stranger gets no mail about a password')
})

test('a flood is braked by network, and by mailbox however it is spelt', async () => {
  await configure({ mode: 'open', perNetworkPerHour: 4 })
  const ask = (email: string, ip: string) => browser(ip)('POST', '/public/sign-up', { email })
  const statuses = async (tries: Array<[string, string]>) => {
    const all: number[] = []
    for (const [email, ip] of tries) all.push((await ask(email, ip)).status)
    return all
  }
  assert.deepEqual(
    await statuses([1, 2, 3, 4, 5].map((i) => [`n${i}@net${i}.example`, '203.0.113.9'])),
    [200, 200, 200, 200, 429],
  )
  assert.deepEqual(
    await statuses(
      ['j.oe@gmail.com', 'joe+a@gmail.com', 'jo.e+b@googlemail.com', 'JOE@gmail.com'].map((one, i) => [
        one,
        `198.51.100.${i}`,
      ]),
    ),
    [200, 200, 200, 429],
  )
  // A network of IPv6 is one address: whoever has one has 2^64.
  assert.deepEqual(
    await statuses([1, 2, 3, 4, 5].map((i) => [`v${i}@six${i}.example`, `2001:db8::${i}`])),
    [200, 200, 200, 200, 429],
  )
  const refused = await ask('n9@net9.example', '203.0.113.9')
  assert.match(refused.message, /too many tries\. Try again in (60|59) minutes/)
  assert.ok(Number(refused.headers.get('retry-after')) > 3000)
})

/** The status of using a new link. */
async function finished(email: string, ip: string): Promise<number> {
  assert.equal((await browser(ip)('POST', '/public/sign-up', { email })).status, 200)
  const { token } = await post.newest(email)
  return (await browser(ip)('POST', `/public/sign-up/${token}`, { password: PASSWORD })).status
}

test('a domain with all names below it is braked by finished sign-ups, and not by requests with invented mailboxes', async () => {
  await configure({ mode: 'open', perDomainPerDay: 2 })
  for (const i of [1, 2, 3, 4])
    assert.equal(
      (await browser(`192.0.2.${i}`)('POST', '/public/sign-up', { email: `invented${i}@mine.example` })).status,
      200,
    )
  assert.equal(await finished('d1@s1.mine.example', '192.0.2.11'), 200)
  assert.equal(await finished('d2@s2.mine.example', '192.0.2.12'), 200)
  assert.equal(await finished('d3@mine.example', '192.0.2.13'), 429)
  assert.deepEqual(await sql(`select 1 from person where email = 'd3@mine.example'`), [])
  // The link stays, for when the day is over, and an operator's invitation is not counted.
  await sql('delete from login_attempt')
  const { token } = await post.newest('d3@mine.example')
  assert.equal((await browser()('POST', `/public/sign-up/${token}`, { password: PASSWORD })).status, 200)
  for (const i of [4, 5, 6]) {
    await g.operator('POST', '/sign-up/invites', { email: `d${i}@mine.example` })
    const invited = await post.newest(`d${i}@mine.example`)
    const { status } = await browser()('POST', `/public/sign-up/${invited.token}`, { password: PASSWORD })
    assert.equal(status, 200)
  }
  // A short name below a country's is a domain that somebody has; a suffix that all share is none.
  const below = async (domain: string) => [
    await finished(`a@s1.${domain}`, '192.0.2.14'),
    await finished(`b@s2.${domain}`, '192.0.2.15'),
    await finished(`c@s3.${domain}`, '192.0.2.16'),
  ]
  assert.deepEqual(await below('abc.de'), [200, 200, 429])
  assert.deepEqual(await below('co.uk'), [200, 200, 200])
})

test('people of a large mail host are braked by mailbox and network only', async () => {
  await configure({ mode: 'open', perDomainPerDay: 1 })
  for (const i of [1, 2, 3]) assert.equal(await finished(`person${i}@gmail.com`, `192.0.2.${i}`), 200)
  assert.equal(await finished('person1@mailinator.com', '192.0.2.4'), 200)
  assert.equal(await finished('person2@mailinator.com', '192.0.2.5'), 429, 'anybody has all mailboxes there')
})

test('what was counted for a day is still counted after the hours in which rows are pruned', async () => {
  await configure({ mode: 'open', perDomainPerDay: 2 })
  const finish = (name: string) => finished(`${name}@day.example`, `198.51.100.${name.charCodeAt(0)}`)
  assert.equal(await finish('a'), 200)
  const aged = (hours: number) =>
    sql(
      `update login_attempt set since = now() - make_interval(hours => ${hours}), blocked_until = now() - make_interval(hours => ${hours})`,
    )
  await aged(23)
  await g.gateway.people.prune()
  assert.deepEqual([await finish('b'), await finish('c')], [200, 429])
  await aged(25)
  await g.gateway.people.prune()
  assert.deepEqual(await sql('select subject from login_attempt'), [], 'nothing stays for ever')
})

test('a challenge is asked before a mail is sent: yes, no, and no answer', async () => {
  const challengeUrl = `http://${hook.host}/challenge`
  await configure({ mode: 'open', challengeUrl })
  const ask = (challenge?: string) =>
    browser('192.0.2.30')('POST', '/public/sign-up', { email: 'asked@example.com', ...(challenge && { challenge }) })
  assert.equal((await ask('solved')).status, 200)
  await post.newest('asked@example.com')
  assert.deepEqual(asked[0]?.body, {
    type: 'sign-up.check',
    email: 'asked@example.com',
    ip: '192.0.2.30',
    challenge: 'solved',
  })
  assert.match(String(asked[0]?.signature), /^v1,/)
  answer = [200, '{"action":"block","reason":"Solve it\\nfirst."}']
  const refused = await ask()
  assert.deepEqual([refused.status, refused.message], [403, 'Solve it first.'])
  for (const odd of [
    [200, 'yes'],
    [200, '{}'],
    [500, '{"action":"allow"}'],
    [302, ''],
  ] as const) {
    answer = odd
    assert.equal((await ask()).status, 503, `${odd}`)
  }
  await hook.close()
  assert.equal((await ask()).status, 503, 'nobody gets in because the hook is down')
  await g.gateway.asked.idle()
  assert.equal(post.to('asked@example.com').length, 1)
  const counted = await sql<{ tries: number }>(`select tries from login_attempt where subject like 'mailbox:%'`)
  assert.deepEqual(
    counted,
    [{ tries: 1 }],
    'who fails the challenge uses up nothing of a mailbox that may be another’s',
  )
  for (const bad of ['http://10.0.0.1/', 'ftp://example.com/', 'no address'])
    assert.equal((await g.operator('PUT', '/sign-up', { mode: 'open', challengeUrl: bad })).status, 400, bad)
})

test('refused domains hold for names below them and in every script', async () => {
  await configure({ mode: 'open', blockedDomains: ['throwaway.example', 'bücher.example', '@UPPER.example'] })
  const refused = [
    'a@throwaway.example',
    'a@x.y.throwaway.example',
    'a@xn--bcher-kva.example',
    'a@BÜCHER.example',
    'a@upper.example',
    'a@x\u3002throwaway.example',
  ]
  for (const [i, email] of refused.entries())
    assert.match((await browser(`203.0.113.${i}`)('POST', '/public/sign-up', { email })).message, /not accepted/, email)
  assert.equal((await browser()('POST', '/public/sign-up', { email: 'a@notthrowaway.example' })).status, 200)
  assert.equal((await g.operator('PUT', '/sign-up', { mode: 'open', blockedDomains: ['no domain'] })).status, 400)
  await configure({ mode: 'domain', domains: ['corp.example'] })
  assert.match(
    (await browser()('POST', '/public/sign-up', { email: 'a@corp.example.evil.example' })).message,
    /only addresses of corp\.example/,
  )
  assert.equal((await browser()('POST', '/public/sign-up', { email: 'a@eu.corp.example' })).status, 200)
})

test('an address that is a list, a header or a quoted part is no mailbox', async () => {
  const bad = [
    'a,b@example.com',
    'a@example.com,c@example.com',
    'a;b@example.com',
    '<a@example.com>',
    '"a b"@example.com',
    'a\r\nBcc: v@example.com',
    'a@example.com\r\nBcc: v@example.com',
    'a@[127.0.0.1]',
    'a@localhost',
    'a@exa_mple.com',
    '(c)a@example.com',
    'a@1.2.3.4',
    `${'x'.repeat(65)}@example.com`,
  ]
  for (const email of bad) assert.equal((await browser()('POST', '/public/sign-up', { email })).status, 400, email)
  const sent = post.mails.filter(({ raw }) => /^bcc:/im.test(raw))
  assert.equal(sent.length, 0)
})

test('by invitation, only who was invited gets in', async () => {
  await configure({ mode: 'invitation', credits: '3' })
  assert.equal((await browser()('POST', '/public/sign-up', { email: 'guest@example.com' })).status, 403)
  const { data } = await g.operator<{ link: string }>('POST', '/sign-up/invites', { email: 'guest@example.com' })
  const mail = await post.newest('guest@example.com')
  assert.ok(data.link.endsWith(`#token=${mail.token}`))
  const pending = await g.operator<Page<{ id: string; email: string }>>('GET', '/sign-up/invites')
  assert.deepEqual(pluck(pending.data.items, 'email'), ['guest@example.com'])
  assert.equal((await browser()('POST', `/public/sign-up/${mail.token}`, { password: PASSWORD })).status, 200)
  assert.equal((await g.operator('POST', '/sign-up/invites', { email: 'guest@example.com' })).status, 409)
  await g.operator('POST', '/sign-up/invites', { email: 'gone@example.com' })
  const { data: open } = await g.operator<Page<{ id: string }>>('GET', '/sign-up/invites')
  await g.operator('DELETE', `/sign-up/invites/${open.items[0]!.id}`)
  const { token } = await post.newest('gone@example.com')
  assert.equal((await browser()('POST', `/public/sign-up/${token}`, { password: PASSWORD })).status, 404)
})

test('of two links for a new password that are used at once, one replaces it', async () => {
  const email = 'both@example.com'
  await signUp(email)
  for (let asked = 0; asked < 2; asked += 1) await browser()('POST', '/public/password', { email })
  await post.newest(email, 3)
  const tokens = post.to(email).slice(-2)
  const tries = await Promise.all(
    tokens.flatMap(({ token }, i) => [
      browser(`203.0.113.${i}`)('POST', `/invites/${token}`, { password: PASSWORD }),
      browser(`203.0.113.${i + 2}`)('POST', `/invites/${token}`, { password: PASSWORD }),
    ]),
  )
  const statuses = tries.map(({ status }) => status).sort()
  assert.deepEqual(statuses, [200, 404, 404, 404], tries.map(({ text }) => text).join())
})

test('a forgotten password is replaced by mail; other links and sessions end with it', async () => {
  const email = 'forgot@example.com'
  const { person } = await signUp(email)
  for (const count of [2, 3]) {
    await browser()('POST', '/public/password', { email })
    await post.newest(email, count)
  }
  const [, first, second] = post.to(email)
  const next = browser('198.51.100.9')
  assert.equal((await next('POST', `/invites/${second!.token}`, { password: 'nine calm herons whistle' })).status, 200)
  assert.equal((await browser()('POST', `/invites/${first!.token}`, { password: PASSWORD })).status, 404)
  assert.equal((await person('GET', '/session')).status, 401)
  assert.equal((await next('GET', '/session')).status, 200)
  assert.equal((await browser()('POST', '/login', { email, password: PASSWORD })).status, 401)
})

test('the link in a mail is not shown to whoever reads the list of deliveries', async () => {
  await browser()('POST', '/public/sign-up', { email: 'shown@example.com' })
  const { token } = await post.newest('shown@example.com')
  const { data } = await g.operator<Page<{ id: string; event: string }>>('GET', '/deliveries?kind=email')
  const id = data.items[0]!.id
  const detail = await g.operator('GET', `/deliveries/${id}`)
  assert.equal(detail.status, 200)
  assert.ok(!JSON.stringify(detail.data).includes(token))
})

test('who deletes their login goes, what they paid and used stays, and starting credits come once', async () => {
  await configure({ mode: 'open', credits: '40' })
  const email = 'leaver@example.com'
  const { person, account, id } = await signUp(email)
  assert.match((await person('POST', '/me/delete', { email: 'other@example.com' })).message, /your own login/)
  assert.match((await person('POST', '/me/delete', { email })).message, /has 40 credits.*lost/)
  await sql(`update session set proved_at = now() - interval '1 hour' where person_id = $1`, [id])
  assert.match((await person('POST', '/me/delete', { email, forfeit: true })).message, /Confirm that it is you/)
  assert.equal((await person('POST', '/proof', { password: PASSWORD })).status, 200)
  assert.equal((await person('GET', '/session')).status, 200)
  const { key } = await g.key(account)
  const gone = await person('POST', '/me/delete', { email, forfeit: true })
  assert.equal(gone.status, 200, gone.text)
  assert.equal((await person('GET', '/session')).status, 401)
  assert.equal((await browser()('POST', '/login', { email, password: PASSWORD })).status, 401)
  assert.ok([401, 403].includes((await g.call('/v1/models', key)).status))
  const mail = await until(async () =>
    post.to(email).find(({ headers }) => headers.get('subject')?.includes('was deleted')),
  )
  assert.ok(mail)
  const { data } = await g.operator<AccountView>('GET', `/accounts/${account}`)
  assert.deepEqual([data.status, data.balance, data.name], ['closed', '0', 'Deleted by its owner'])
  const kinds = await sql<{ kind: string }>('select kind from transfer where account_id = $1 order by id', [account])
  assert.deepEqual(kinds.map(({ kind }) => kind).length, 2, 'what was given and what was written off')
  for (const table of ['person', 'session', 'membership', 'invite'])
    assert.ok(!JSON.stringify(await sql(`select * from ${table}`)).match(new RegExp(`${email}|${id}`)), table)
  assert.deepEqual(await g.problems(true), [])
  const again = await signUp('lea.ver+again@example.com')
  const { data: second } = await g.operator<AccountView>('GET', `/accounts/${again.account}`)
  assert.equal(second.balance, '0')
})

test('the last owner of an account with members, and the last operator, cannot leave', async () => {
  const { person, account } = await signUp('boss@example.com')
  const invited = await person('POST', `/accounts/${account}/invites`, { email: 'staff@example.com', role: 'member' })
  assert.equal(invited.status, 200, invited.text)
  const staff = browser()
  const mail = await post.newest('staff@example.com')
  await staff('POST', `/invites/${mail.token}`, { password: PASSWORD })
  assert.match((await person('POST', '/me/delete', { email: 'boss@example.com' })).message, /last owner/)
  assert.equal((await staff('POST', '/me/delete', { email: 'staff@example.com' })).status, 200)
  assert.equal((await person('POST', '/me/delete', { email: 'boss@example.com' })).status, 200)
  const token = (await g.gateway.people.openSetup())!
  const operator = browser()
  await operator('POST', '/setup', { token, email: 'op@example.com', password: PASSWORD })
  assert.match((await operator('POST', '/me/delete', { email: 'op@example.com' })).message, /last operator/)
})

test('of two owners, and of two operators, who delete their logins at the same moment, one stays', async () => {
  const invited = async (by: ReturnType<typeof browser>, path: string, body: { email: string; role: string }) => {
    const made = await by('POST', path, body)
    assert.equal(made.status, 200, made.text)
    const { token } = await post.newest(body.email)
    const person = browser()
    assert.equal((await person('POST', `/invites/${token}`, { password: PASSWORD })).status, 200)
    return person
  }
  for (const round of [1, 2, 3]) {
    const [email, other] = [`first${round}@race.example`, `second${round}@race.example`]
    const { person, account } = await signUp(email)
    const second = await invited(person, `/accounts/${account}/invites`, { email: other, role: 'owner' })
    await invited(person, `/accounts/${account}/invites`, { email: `staff${round}@race.example`, role: 'member' })
    const answers = await Promise.all([
      person('POST', '/me/delete', { email, forfeit: true }),
      second('POST', '/me/delete', { email: other, forfeit: true }),
    ])
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409], answers.map(({ text }) => text).join())
    const owners = await sql(`select 1 from membership where account_id = $1 and role = 'owner'`, [account])
    assert.equal(owners.length, 1)
    const { data } = await g.operator<AccountView>('GET', `/accounts/${account}`)
    assert.equal(data.status, 'open', 'the others keep their account')
    await sql('delete from login_attempt')
  }
  const operator = browser()
  assert.equal((await operator('POST', '/login', { email: 'op@example.com', password: PASSWORD })).status, 200)
  const second = await invited(operator, '/operator-invites', { email: 'op2@example.com', role: 'operator' })
  const answers = await Promise.all([
    operator('POST', '/me/delete', { email: 'op@example.com' }),
    second('POST', '/me/delete', { email: 'op2@example.com' }),
  ])
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409], answers.map(({ text }) => text).join())
})

test('only operators change sign-up and branding, and mails are previewed in a frame that can do nothing', async () => {
  const { person } = await signUp('curious@example.com')
  for (const path of ['/sign-up', '/branding', '/mails', '/sign-up/invites'])
    assert.equal((await person('GET', path)).status, 403, path)
  const { data } = await g.operator<Page<{ name: string; subject: string; text: string }>>('GET', '/mails')
  assert.deepEqual(
    pluck(data.items, 'name'),
    words(`
    confirm known member operator invitation reset deleted planUnpaid planEnded
  `),
  )
  const framed = await fetch(`${g.url}/admin/v1/mails/confirm`, {
    headers: { authorization: 'Bearer operator-token-for-tests-0123456789', accept: 'text/html' },
  })
  assert.match(
    framed.headers.get('content-security-policy') ?? '',
    /default-src 'none'.*frame-ancestors 'self'; sandbox$/,
  )
  assert.match(await framed.text(), /Confirm and choose a password/)
})
