// Redaction over streams that are cut at random: through the real formats, from each to each, with the vendor's events
// and bytes cut anywhere.
import '../../../test/formats.ts' // Google's too.
import { assert, runs, test } from '../../../test/kit.ts'
import type { CatalogDocument } from '../../catalog/document.ts'
import { readTextTraits } from '../../catalog/traits.ts'
import { readJson } from '../../kernel/json.ts'
import { createSecrets } from '../../kernel/secret.ts'
import type { Exchange } from '../../protocols/protocol.ts'
import type { ReplyEvent } from '../../protocols/text/canonical.ts'
import type { TextFormat } from '../../protocols/text/format.ts'
import { FORMATS as ALL } from '../../protocols/text/formats.ts'
import { readEvents } from '../../protocols/text/relay.ts'
import { readTextRequest } from '../../protocols/text/text.ts'
import { bytesOf } from '../../upstream/sse.ts'
import { createGuardrails } from './chain.ts'
import { guardrailSection } from './rules.ts'

const FORMATS: readonly TextFormat[] = Object.values(ALL)
const TRAITS = readTextTraits()

/** The same numbers for the same seed. */
function randomFrom(seed: number) {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (count: number) => Math.floor(next() * count)
  const oneOf = <T>(list: readonly T[]): T => list[below(list.length)]!
  const cut = (text: string, most: number): string[] => {
    const pieces: string[] = []
    for (let at = 0; at < text.length; ) {
      const length = 1 + below(most)
      pieces.push(text.slice(at, at + length))
      at += length
    }
    return pieces
  }
  return { below, oneOf, cut }
}
type Random = ReturnType<typeof randomFrom>

const digits = ({ below }: Random, count: number) => Array.from({ length: count }, () => below(10)).join('')

const PLANTS: readonly ((random: Random) => string)[] = [
  (random) =>
    `${random.oneOf(['jo', 'anna.maria', 'müller', 'x+y'])}${random.below(1e6)}@mail${random.below(99)}.example.org`,
  (random) => `+49 ${digits(random, 3)} ${digits(random, 7)}`,
  ({ oneOf }) => oneOf(['4111 1111 1111 1111', '5555555555554444', '3782-822463-10005']),
  ({ oneOf }) => oneOf(['DE89 3704 0044 0532 0130 00', 'GB82WEST12345698765432', 'ES9121000418450200051332']),
  (random) => `sk-proj-${digits(random, 24)}`,
  (random) => `TCK-${digits(random, 6)}`,
  (random) => `-----BEGIN PRIVATE KEY-----\nMII"${digits(random, 60)}\\/\n-----END PRIVATE KEY-----`,
]
const WORDS = [
  'the',
  'Zürich',
  '日本',
  '😀',
  'ask',
  '[',
  '[EMAIL_',
  '[CARD_0123456789AB]',
  'a@b',
  '42',
  '"quoted"',
  '\\',
  'OK.\n',
  'IBAN',
]
const patterns = ['email', 'phone', 'card', 'iban', 'api_key', 'private_key']
const own = { ticket: 'TCK-[0-9]{6}' }
/** Answers are only restored; or also searched, by patterns that know how their matches begin; or by any. */
const RULES = [
  { all: { redact: { patterns, own } } },
  { all: { redact: { patterns, on: ['request', 'answer'] } }, requests: { redact: { own } } },
  { all: { redact: { patterns, own, on: ['request', 'answer'] } } },
].map(
  (rules) =>
    ({ guardrails: guardrailSection.schema.parse(rules) }) as Pick<CatalogDocument, 'guardrails'> as CatalogDocument, // Nothing else of it is read.
)

const hooks = { ask: () => assert.fail('no rule here asks anybody') }
const GUARDRAILS = createGuardrails({ secrets: createSecrets('a secret of a test'), hooks })
const guardFor = (account: string, mode: number) =>
  GUARDRAILS.find(RULES[mode]!, { account, keys: ['k'], products: ['m'], isModel: true, labels: undefined })!

function requestOf({ name }: TextFormat, said: string): object {
  if (name === 'openai-responses') return { model: 'm', stream: true, input: said }
  if (name === 'gemini')
    return { model: 'm', stream: true, alt: 'sse', contents: [{ role: 'user', parts: [{ text: said }] }] }
  return { model: 'm', stream: true, max_tokens: 100, messages: [{ role: 'user', content: said }] }
}

/** What a vendor streams: its text and its arguments in pieces. */
function vendorStream(format: TextFormat, texts: readonly string[], inputs: readonly string[]): string {
  const facts = {
    uid: 'm',
    requestId: 'req_1',
    createdSeconds: 1,
    nowSeconds: () => 1,
    inputTokens: 1,
    includeUsage: true,
    request: {},
  }
  const events: ReplyEvent[] = [
    { type: 'start' },
    ...texts.map((text): ReplyEvent => ({ type: 'text', text })),
    { type: 'call', key: 0, id: 'call_1', name: 'send' },
    ...inputs.map((text): ReplyEvent => ({ type: 'input', key: 0, text })),
    { type: 'end', finish: 'calls' },
  ]
  const writer = format.writer(facts)
  const tokens = { prompt: 1, cached: 0, cacheWrite: 0, output: 1, reasoning: undefined }
  return events.map((event) => writer.write(event)).join('') + writer.finish(tokens, '')
}

test('over streams cut at random no planted secret passes, and every placeholder comes back', () => {
  for (let seed = 1; seed <= runs(160, 10_000); seed++) one(randomFrom(seed), seed)
})

function one(random: Random, seed: number): void {
  const { below, oneOf, cut } = random
  const [front, back] = [FORMATS[seed % 4]!, FORMATS[(seed >> 2) % 4]!]
  const told = `seed ${seed}, ${front.name} from ${back.name}`
  const own = Array.from({ length: 1 + below(4) }, () => oneOf(PLANTS)(random))
  const mode = seed % RULES.length
  const guard = guardFor('a', mode)
  const json = guard.redact(readJson(Buffer.from(JSON.stringify(requestOf(front, own.join(' and '))))))
  const asked = readTextRequest(front.name, json, {
    uid: 'm',
    traits: TRAITS,
    limits: { outputTokensReserve: 100, outputTokensFloor: 1 },
  })
  const target = { protocol: back.name, baseUrl: 'http://v', secret: undefined, headers: {}, model: 'v' }
  const options = { requestId: 'req_1', createdSeconds: 5, signal: new AbortController().signal, guard }
  const exchange = asked.open(target, options) as Exchange
  const sent = String(exchange.call.body)
  for (const secret of own) assert.ok(!sent.includes(JSON.stringify(secret).slice(1, -1)), `${told}: ${sent}`)
  const placeholders = [...sent.matchAll(/\[[A-Z_]+_[0-9A-F]{12}\]/g)].map(([all]) => all)
  assert.equal(new Set(placeholders).size, new Set(own).size, `${told}: ${sent}`)

  // What the vendor says: words, the caller's placeholders, and secrets of others.
  const known = new Map(placeholders.map((placeholder, at) => [placeholder, own[at]!]))
  const leaked: string[] = []
  const words = Array.from({ length: 3 + below(20) }, () => {
    const kind = below(4)
    if (kind === 0) return oneOf(placeholders)
    if (kind > 1) return oneOf(WORDS)
    leaked.push(oneOf(PLANTS)(random))
    return leaked.at(-1)!
  })
  const said = words.join(' ; ')
  const args = JSON.stringify({ to: oneOf(placeholders), note: words.slice(0, 3).join(' ; '), card: 4111111111111111 })
  const stream = Buffer.from(vendorStream(back, cut(said, 9), cut(args, 7)))
  const relay = exchange.stream!({})
  const pieces: Buffer[] = []
  for (let at = 0; at < stream.length; ) {
    const length = 1 + below(200)
    pieces.push(bytesOf(relay.push(stream.subarray(at, at + length)) ?? '', relay.encoding))
    at += length
  }
  pieces.push(bytesOf(relay.end() ?? '', relay.encoding))
  assert.ok(relay.state.terminal && !relay.state.fault, told)
  const out = Buffer.concat([...pieces, Buffer.from(relay.finish(': tollgate charge=1\n'))])

  const reply = front.readReply(front.rollUp(readEvents(out), TRAITS), TRAITS)
  const text = reply.parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('')
  const input = reply.parts.flatMap((part) => (part.kind === 'call' ? [part.input] : [])).join('')
  for (const secret of leaked) {
    if (mode === 0 || own.includes(secret) || (mode === 1 && secret.startsWith('TCK'))) continue
    assert.ok(!text.includes(secret), `${told}: ${secret} in ${text}`)
    assert.ok(!JSON.stringify(JSON.parse(input)).includes(JSON.stringify(secret).slice(1, -1)), `${told}: ${input}`)
  }
  let expected = said
  for (const [placeholder, secret] of known) expected = expected.replaceAll(placeholder, () => secret)
  const masked = (value: string) => [...own, ...leaked].reduce((all, secret) => all.replaceAll(secret, '#'), value)
  const marks = (value: string) => value.replaceAll(/\[[A-Z_]+_[0-9A-F]{12}\]/g, '#')
  assert.equal(marks(masked(text)), marks(masked(expected)), told)
  if (mode === 0) assert.equal(text, expected, told)
  const got = JSON.parse(input) as { to: string; card: unknown }
  assert.ok(own.includes(got.to), `${told}: ${got.to}`)
  assert.match(String(got.card), mode === 0 ? /^4111111111111111$/ : /^\[CARD_[0-9A-F]{12}\]$/, told)
}
