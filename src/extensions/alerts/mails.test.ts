// Alert mails go to members and operators, and to strangers who said so once: with a real mail server, and the links as
// a reader, a scanner and a mail program open them.
import { assert, pluck, started, startGateway, test } from '../../../test/gateway.ts'
import { addMember, type ReceivedMail, startMailServer } from '../../../test/mail-server.ts'
import type { DeliveryDetail, DeliveryPage } from '../../jobs/views.ts'
import type { AlertSettings, AlertView } from './views.ts'

const post = started(startMailServer)
const g = started(() =>
  startGateway({ env: { TOLLGATE_SMTP_URL: post.url, TOLLGATE_MAIL_FROM: 'Tollgate <alerts@gateway.example>' } }),
)

const put = (place: string, to: readonly string[]) =>
  g.operator<AlertSettings>('PUT', `${place}/alert-settings`, {
    receivers: to.map((address) => ({ kind: 'email', to: address })),
  })
const statuses = async (place: string) => {
  const { data } = await g.operator<AlertSettings>('GET', `${place}/alert-settings`)
  return Object.fromEntries(data.receivers.map(({ to, status }) => [to, status]))
}
/** Sends a test alert; answers to whom it went. The database forgets when the last one was. */
async function told(place: string): Promise<string[]> {
  await g.sql(`update alert set at = at - interval '2 minutes' where rule = 'test'`)
  const { data } = await g.operator<AlertView>('POST', `${place}/alerts/test`)
  return data.deliveries.map(({ to }) => to).sort()
}
const linkOf = ({ headers, text }: ReceivedMail) => {
  const [, url = ''] = /^<(http.+)>$/.exec(headers.get('list-unsubscribe') ?? '') ?? []
  assert.equal(headers.get('list-unsubscribe-post'), 'List-Unsubscribe=One-Click')
  assert.ok(text.includes(url), 'the link stands in the text too')
  return url
}
const oneClick = (
  url: string,
  body: URLSearchParams | FormData = new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }),
) => fetch(url, { method: 'POST', body, redirect: 'error' })
/** Presses a button of the page. */
async function press(url: string, label: string): Promise<string> {
  const page = await (await fetch(url)).text()
  const forms = [...page.matchAll(/<form method="post" action="([^"]+)"><p><button>([^<]+)</g)]
  const [, action = ''] = forms.find(([, , name]) => name === label) ?? []
  const answer = await fetch(new URL(action.replaceAll('&amp;', '&'), url), { method: 'POST' })
  assert.equal(answer.status, 200)
  return answer.text()
}

test('a stranger gets one mail, and alerts only after a press of a button; opening the link is not enough', async () => {
  const { id } = await g.account()
  const place = `/accounts/${id}`
  await addMember(g.gateway.database, id, 'member@here.example')
  const { data } = await put(place, ['Member@here.example', 'stranger@else.example'])
  assert.deepEqual(pluck(data.receivers, 'status'), ['active', 'waiting'])
  const asked = await post.newest('stranger@else.example')
  assert.equal(asked.headers.get('subject'), '[Tollgate] Do you want to receive alerts?')
  assert.deepEqual(await told(place), ['Member@here.example'])
  const link = linkOf(asked)
  for (const method of ['GET', 'HEAD', 'GET']) {
    const page = await fetch(link, { method })
    assert.deepEqual([page.status, page.headers.get('referrer-policy')], [200, 'no-referrer'])
  }
  assert.equal((await statuses(place))['stranger@else.example'], 'waiting', 'a scanner opened it')
  assert.match(await press(link, 'Receive these alerts'), /You will receive them/)
  assert.deepEqual(await told(place), ['Member@here.example', 'stranger@else.example'])
  const alert = await post.newest('stranger@else.example', 2)
  assert.equal(alert.headers.get('subject'), '[Tollgate] A test')

  // Both stop by one click, in either form of body that RFC 8058 names, and stay so when they are entered again.
  assert.equal((await oneClick(linkOf(alert))).status, 200)
  const form = new FormData()
  form.set('List-Unsubscribe', 'One-Click')
  assert.equal((await oneClick(linkOf(await post.newest('Member@here.example')), form)).status, 200)
  await put(place, [])
  await put(place, ['member@here.example', 'stranger@else.example'])
  assert.deepEqual(await statuses(place), {
    'member@here.example': 'unsubscribed',
    'stranger@else.example': 'unsubscribed',
  })
  assert.deepEqual(await told(place), [])
  assert.equal(post.to('stranger@else.example').length, 2, 'nobody asks again')
  const old = await g.operator<DeliveryPage>('GET', `${place}/deliveries?kind=email`)
  for (const { id: delivery } of old.data.items)
    assert.equal((await g.operator('POST', `/deliveries/${delivery}/repeat`)).status, 409)
  await press(linkOf(alert), 'Receive these alerts')
  assert.equal((await statuses(place))['stranger@else.example'], 'active')
})

test('an account cannot use confirmation mails to flood anybody', async () => {
  const { id } = await g.account()
  const place = `/accounts/${id}`
  const victims = ['v1@flood.example', 'v2@flood.example', 'v3@flood.example', 'v4@flood.example', 'v5@flood.example']
  assert.equal((await put(place, victims)).status, 200)
  for (const victim of victims) await post.newest(victim)
  assert.equal((await put(place, [...victims, 'v6@flood.example'])).status, 429)
  assert.equal((await statuses(place))['v6@flood.example'], undefined, 'nothing of a refused change is kept')
  for (let again = 0; again < 3; again++) {
    await put(place, [])
    assert.equal((await put(place, victims)).status, 200)
  }
  const other = await g.account()
  assert.equal((await put(`/accounts/${other.id}`, ['v.1+again@flood.example'])).status, 429, 'the same mailbox')
  const { data } = await g.operator<DeliveryPage>('GET', `${place}/deliveries?kind=email`)
  assert.equal(data.items.length, 5)
  for (const { id: delivery } of data.items) {
    assert.equal((await g.operator('POST', `${place}/deliveries/${delivery}/repeat`)).status, 409)
    const shown = await g.operator<DeliveryDetail>('GET', `${place}/deliveries/${delivery}`)
    assert.ok(!JSON.stringify(shown.data).includes('token'), 'who entered the address cannot confirm it')
  }
  assert.equal(post.mails.filter(({ to }) => to.some((one) => one.endsWith('@flood.example'))).length, 5)
  // Two changes at the same moment.
  const racing = await Promise.all(
    [1, 2].map(async () => put(`/accounts/${(await g.account()).id}`, ['r@race.example'])),
  )
  assert.deepEqual(racing.map(({ status }) => status).sort(), [200, 429])
})

test('gateway alerts go to operators; a member of some account, an unproved login and a forged link confirm nothing', async () => {
  const { id } = await g.account()
  const database = g.gateway.database
  await addMember(database, id, 'customer@here.example')
  await addMember(database, id, 'operator@here.example')
  await addMember(database, id, 'unproved@here.example')
  const sql = (text: string) => database.query({ text })
  await sql(
    `update person set operator_role = 'admin' where email in ('operator@here.example', 'unproved@here.example')`,
  )
  await sql(`update person set email_verified_at = null where email = 'unproved@here.example'`)
  await put('', ['operator@here.example', 'customer@here.example', 'unproved@here.example'])
  assert.deepEqual(await statuses(''), {
    'operator@here.example': 'active',
    'customer@here.example': 'waiting',
    'unproved@here.example': 'waiting',
  })
  assert.deepEqual(await told(''), ['operator@here.example'])
  const link = new URL(linkOf(await post.newest('customer@here.example')))
  const token = link.searchParams.get('token') ?? ''
  const [text = '', signature = ''] = token.split('.')
  const forged = Buffer.from(JSON.stringify([id, 'unproved@here.example'])).toString('base64url')
  for (const bad of [
    '',
    '.',
    text,
    `${text}.`,
    `${forged}.${signature}`,
    `${text}.${signature.slice(2)}`,
    '%00.%ff',
    `${token}x`,
  ]) {
    for (const method of ['GET', 'POST']) {
      const answer = await fetch(`${g.url}/alert-mails?wanted=yes&token=${bad}`, { method })
      assert.equal(answer.status, 404, `${method} ${bad}`)
    }
  }
  await press(link.href, 'Do not send me alerts')
  assert.equal((await statuses(''))['customer@here.example'], 'unsubscribed')
  await sql(`delete from membership where account_id = '${id}'`)
  await put(`/accounts/${id}`, [])
})
