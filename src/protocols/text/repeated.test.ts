import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTextTraits } from '../../catalog/traits.ts'
import { isObject, type Json } from '../../kernel/json.ts'
import { MessagesReader } from './anthropic-messages/answer.ts'
import { ChatReader, ChatWriter } from './openai-chat/answer.ts'
import { ConvertRelay, type StreamReader } from './reader.ts'

const FACTS = {
  uid: 'a/model',
  requestId: 'req_1',
  createdSeconds: 1,
  nowSeconds: () => 1,
  inputTokens: 1,
  includeUsage: true,
  request: {},
}
/** Texts that could be taken for something else, or for part of what stands around them. */
const TEXTS = [
  'a',
  ' word',
  ',',
  '","',
  '"',
  '\\',
  'b\\',
  '\n',
  '',
  'content',
  'Zürich',
  '日本',
  '🙂',
  '{"a":',
  'x'.repeat(30),
]
const STREAMS = 400

/** The same numbers at every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

function frame(value: Json, next: (below: number) => number): string {
  const data = JSON.stringify(value)
  // Some vendors escape what others do not.
  const escaped = data.replace(
    /[^ -~]|(?<=:")[a-z](?=")/g,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  const name = typeof value.type === 'string' ? `event: ${value.type}\n` : ''
  return `${name}data: ${next(8) === 0 ? escaped : data}\n\n`
}

function chatStream(next: (below: number) => number): string {
  const said = () => TEXTS[next(TEXTS.length)]
  const delta = (): Json => {
    const kind = next(8)
    if (kind < 4) return { content: said() }
    if (kind === 4) return { reasoning_content: said() }
    if (kind === 5) return { content: 'a', refusal: said() }
    const index = next(2) === 0 ? {} : { index: next(2) }
    return {
      tool_calls: [{ ...index, ...(next(3) === 0 ? { id: `c${next(2)}` } : {}), function: { arguments: said() } }],
    }
  }
  const chunk = (delta: Json) => frame({ id: 'a', choices: [{ index: 0, delta, finish_reason: null }] }, next)
  let stream = ''
  for (let i = 0; i < 40; i++) {
    const repeated = delta()
    stream += chunk(repeated)
    for (let more = next(4); more > 0 && 'content' in repeated; more--)
      stream += chunk({ ...repeated, content: said() })
    if (next(20) === 0)
      stream += 'data: {"choices":[{"delta":{"content":"a\tb"}}]}\n\n'.replace('\t', next(2) ? ' ' : '\\t')
  }
  return `${stream}data: [DONE]\n\n`
}

function messagesStream(next: (below: number) => number): string {
  let stream = ''
  for (let i = 0; i < 10; i++) {
    const [type, member] = [
      ['text_delta', 'text'],
      ['thinking_delta', 'thinking'],
      ['input_json_delta', 'partial_json'],
    ][next(3)] as [string, string]
    const block =
      member === 'text' ? { type: 'text', text: '' } : { type: 'tool_use', id: `t${i}`, name: 'f', input: {} }
    const index = next(2)
    stream += frame({ type: 'content_block_start', index, content_block: block }, next)
    for (let more = next(6); more > 0; more--) {
      const delta = { type, [member]: TEXTS[next(TEXTS.length)] }
      stream += frame({ type: 'content_block_delta', index, delta }, next)
    }
  }
  return `${stream}${frame({ type: 'message_stop' }, next)}`
}

function relayed(reader: StreamReader, stream: Buffer): string {
  const relay = new ConvertRelay(reader, new ChatWriter(FACTS))
  let out = ''
  for (let at = 0; at < stream.length; at += 700) out += relay.push(stream.subarray(at, at + 700)) ?? ''
  return `${out}${relay.finish('')} ${relay.terminal} ${relay.outputTokensSeen}`
}

test('an event that is known by its like says what it would say when it is read', () => {
  class EachChat extends ChatReader {
    override readonly repeats = false
  }
  class EachMessages extends MessagesReader {
    override readonly repeats = false
  }
  for (let seed = 1; seed <= STREAMS; seed++) {
    const chat = Buffer.from(chatStream(numbers(seed)))
    assert.equal(
      relayed(new ChatReader(readTextTraits()), chat),
      relayed(new EachChat(readTextTraits()), chat),
      `chat ${seed}`,
    )
    const messages = Buffer.from(messagesStream(numbers(seed)))
    assert.equal(relayed(new MessagesReader(), messages), relayed(new EachMessages(), messages), `messages ${seed}`)
  }
})

test('a chat vendor that repeats itself is parsed once', () => {
  const parsed: unknown[] = []
  class Counting extends ChatReader {
    override read(event: Parameters<ChatReader['read']>[0]) {
      parsed.push(JSON.parse(event.data))
      return super.read(event)
    }
  }
  const relay = new ConvertRelay(new Counting(readTextTraits()), new ChatWriter(FACTS))
  const said = ['one', ' two', ' "three"', ' fünf', '\n']
  const chunk = (content: string) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`
  const out = relay.push(Buffer.from(said.map(chunk).join(''))) ?? ''
  for (const text of said) assert.ok(out.includes(JSON.stringify(text)))
  // The first starts the answer, the second is what later ones are compared with, and in the third stands a quote.
  assert.equal(parsed.filter(isObject).length, 4)
})

test('what stands elsewhere in an event is not taken for its text', () => {
  const relay = new ConvertRelay(new ChatReader(readTextTraits()), new ChatWriter(FACTS))
  const chunk = (id: string) => `data: {"id":"${id}","choices":[{"index":0,"delta":{"content":"\\u0061"}}]}\n\n`
  const out = relay.push(Buffer.from(['x', 'a', 'b'].map(chunk).join(''))) ?? ''
  assert.deepEqual(out.match(/(?<="content":")[^"]+/g), ['a', 'a', 'a'])
})
