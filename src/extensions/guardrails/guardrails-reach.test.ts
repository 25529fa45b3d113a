// Guardrails where a call is not a body of JSON to one model: forms and transcripts, queries, longer models, stored
// objects, and empty accounts.
import { json } from 'node:stream/consumers'
import { assert, listen, needs, started, test, testGateway } from '../../../test/gateway.ts'
import { openSocket } from '../../../test/socket-client.ts'
import { form, soundOf, startSoundVendor, TRANSCRIBE, wav } from '../../../test/sound.ts'

const MAIL = 'jo.doe@mail.example.org'
const RANKS = '/v1/siteanalytics/websites/ranks'

const sound = started(startSoundVendor)

let asked: { texts: string[]; on: string }[] = []
let isDown = false
const hooks = started(() =>
  listen(async (request, response) => {
    const body: any = await json(request)
    asked.push(body)
    const isBad = body.texts.some((text: string) => text.includes('poison'))
    response.writeHead(isDown ? 500 : 200).end(JSON.stringify({ action: isBad ? 'block' : 'allow' }))
  }),
)

const g = testGateway(() => ({ env: { TOLLGATE_OUTBOUND_ALLOW: hooks.host } }))
const { post } = soundOf(() => g)

async function rules(guardrails: object): Promise<void> {
  const { data } = await g.operator<any>('GET', '/catalog')
  const { document } = data
  document.vendors.other = { baseUrl: sound.url }
  document.models.told = { ...document.models[TRANSCRIBE], routes: [{ vendor: 'other', protocol: 'openai-audio' }] }
  const base = document.models['beta-haiku-4-5']
  document.models.short = {
    ...base,
    limits: { contextTokens: 1000, outputTokensMax: 50 },
    contextFallback: 'beta-haiku-4-5',
  }
  document.guardrails = guardrails
  const { status, data: applied } = await g.operator<any>('PUT', '/catalog', { document, note: 'test' })
  assert.equal(status, 200, JSON.stringify(applied))
}
const hook = (on: string[], more: object = {}) => ({ gate: { hook: { url: `${hooks.url}/`, on }, ...more } })
const transcript = (fields: Record<string, string>) => g.account().then(({ key }) => post(key, form(fields, wav(1))))

test('transcripts are looked at in every form: JSON, text, subtitles and events', needs('audio'), async () => {
  const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`
  const usage = { type: 'duration', seconds: 1 }
  const words = ['some', ' poi', 'son ', MAIL]
  const deltas = words.map((delta) => event({ type: 'transcript.text.delta', delta })).join('')
  const text = words.join('')
  const streamed = deltas + event({ type: 'transcript.text.done', text, usage })
  const subtitles = `1\n00:00:00,000 --> 00:00:01,000\n${text}\n`
  const forms: [Record<string, string>, string, string][] = [
    [{}, 'application/json', JSON.stringify({ text, usage })],
    [{ response_format: 'text' }, 'application/json', JSON.stringify({ text, usage })],
    [{ response_format: 'srt' }, 'text/plain', subtitles],
    [{ response_format: 'vtt' }, 'text/vtt', `WEBVTT\n\n${subtitles}`],
    [{ stream: 'true' }, 'text/event-stream', streamed],
    [{ stream: 'true' }, 'application/json', JSON.stringify({ text, usage })],
  ]
  for (const [fields, type, body] of forms) {
    sound.answer = { type, body }
    await rules({ leaks: { redact: { patterns: ['email'], on: ['answer'] } } })
    const searched = await (await transcript({ model: 'told', ...fields })).text()
    assert.ok(!searched.includes(MAIL) && /\[EMAIL_[0-9A-F]{12}\]/.test(searched), `${type}: ${searched}`)
    await rules(hook(['answer']))
    const blocked = await (await transcript({ model: 'told', ...fields })).text()
    assert.match(blocked, /blocked this answer/, JSON.stringify(fields))
    assert.ok(!blocked.includes('son'), blocked)
  }
})

test('a stream whose check fails is not called free', async () => {
  await rules(hook(['answer']))
  isDown = true
  const { key } = await g.account()
  const ask = (stream: boolean) =>
    g.call('/v1/chat/completions', key, { model: 'short', stream, messages: [{ role: 'user', content: 'x' }] })
  try {
    assert.match(await (await ask(false)).text(), /You were not charged/)
    const streamed = await (await ask(true)).text()
    assert.ok(/is charged\. Try again/.test(streamed) && !streamed.includes('not charged'), streamed)
  } finally {
    isDown = false
  }
})

test('the query of a data endpoint is looked at', async () => {
  const { key } = await g.account()
  await rules(hook(['request'], { models: ['*'] }))
  asked = []
  const refused = await g.call(`${RANKS}?keys=poison.example`, key)
  assert.match(await refused.text(), /blocked this request/)
  assert.ok(asked[0]?.texts.includes('poison.example'))
  assert.equal((await g.call(`${RANKS}?keys=fine.example`, key)).status, 200)
  await rules({ hide: { models: ['*'], redact: { own: { site: 'secret[.]example' } } } })
  await (await g.call(`${RANKS}?keys=secret.example`, key)).text()
  assert.ok(!g.sandbox.seen.calls.some(({ url }) => url.includes('secret.example')))
})

test('a longer model that the catalog names does not escape the rules about it', async () => {
  const { key } = await g.account()
  await rules({ hide: { models: ['beta-haiku-4-5'], redact: { patterns: ['email'] } } })
  const content = `${'word '.repeat(3000)}${MAIL}`
  const answer = await g.call('/v1/chat/completions', key, { model: 'short', messages: [{ role: 'user', content }] })
  assert.deepEqual([answer.status, answer.headers.get('x-tollgate-model')], [200, 'beta-haiku-4-5'])
  await answer.text()
  assert.ok(!g.sandbox.seen.calls.some(({ body = '' }) => body.includes(MAIL)))
})

test('what is stored at a vendor is under the rules of its labels', needs('background'), async () => {
  const { key } = await g.account()
  await rules({ hide: { labels: { team: 'red' }, redact: { patterns: ['email'] } } })
  const items = [{ type: 'message', role: 'user', content: MAIL }]
  const headers = { 'x-tollgate-tags': 'team=red' }
  assert.equal((await g.call('/v1/conversations', key, { items }, { headers })).status, 200)
  assert.match(g.sandbox.seen.calls.findLast(({ url }) => url.includes('conversations'))?.body ?? '', /\[EMAIL_/)
})

test('for an account without credits nobody is asked', async () => {
  const { key } = await g.account({ credits: 0n })
  await rules(hook(['request']))
  asked = []
  const messages = [{ role: 'user', content: 'x' }]
  assert.equal((await g.call('/v1/chat/completions', key, { model: 'short', messages })).status, 402)
  assert.equal(asked.length, 0)
})

test(
  'Realtime is rejected where a rule applies, also in a session that runs, and says why',
  needs('sockets'),
  async () => {
    const { key } = await g.account()
    const at = `${g.url}/v1/realtime?model=alpha-realtime-1`
    await rules(hook(['request'], { models: ['alpha-5.4'] }))
    const running = await openSocket(at, { key })
    await running.next('session.created')
    await rules(hook(['request']))
    running.send({ type: 'response.create', response: { output_modalities: ['text'] } })
    assert.match((await running.next('error')).error.message, /guardrails apply, and they cannot check sound/)
    running.ws.close()
    const refused = await openSocket(at, { key })
    assert.match((await refused.next('error')).error.message, /Realtime is not available here/)
    assert.equal((await refused.closed()).code, 1008)
    const secret = await g.call('/v1/realtime/client_secrets', key, { session: { model: 'alpha-realtime-1' } })
    assert.equal(secret.status, 403)
  },
)
