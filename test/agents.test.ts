// Requests of coding agents as these sent them (test/long/agents.long.ts records them), through the gateway to a model
// of every kind: each must be answered, whatever format the vendor speaks, and name tools as the agent does.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, assert, test, testGateway, textOf } from './gateway.ts'
import { EVERY_KIND, everyKind } from './sdk/families.ts'

const FIXTURES = join(import.meta.dirname, 'fixtures', 'agents')
const ENDS = /response\.completed|message_stop|\[DONE\]/

let key: string
const g = testGateway({ catalog: everyKind }, async () => {
  key = (await g.account({ credits: 100_000_000_000n })).key
})
afterEach(() => g.sandbox.seen.clear())

const recorded = (name: string): { path: string; body: any } => JSON.parse(readFileSync(join(FIXTURES, name), 'utf8'))
const sent = () => JSON.parse(g.sandbox.seen.calls.at(-1)?.body ?? '{}')

for (const name of readdirSync(FIXTURES))
  test(`${name.replace('.json', '')}: what the agent asked is answered by a model of every kind`, async () => {
    const { path, body } = recorded(name)
    for (const model of EVERY_KIND) {
      const text = await textOf(g.call(path, key, { ...body, model }))
      if (body.stream) assert.match(text, ENDS, model)
    }
  })

const CLOSE = {
  type: 'function',
  name: 'close_agent',
  description: 'Closes an agent.',
  strict: false,
  parameters: { type: 'object', properties: { target: { type: 'string' } }, required: ['target'] },
}
const LONG = `a_tool_with_a_name_${'x'.repeat(60)}`
const GROUPED = {
  input: 'Close it. [[tool=agents__close_agent]]',
  tools: [
    CLOSE,
    { type: 'namespace', name: 'agents', description: 'Agents.', tools: [CLOSE, { ...CLOSE, name: LONG }] },
  ],
}
const callsIn = ({ output }: any) => output.filter(({ type }: any) => type === 'function_call')

test('a tool of a namespace is called under the names that Codex knows, and its history is understood', async () => {
  for (const model of EVERY_KIND) {
    const isOwn = model.startsWith('alpha')
    const input = isOwn ? 'Close it. [[tool=close_agent]]' : GROUPED.input
    const whole: any = await (await g.call('/v1/responses', key, { ...GROUPED, input, model })).json()
    const call = callsIn(whole).find(({ namespace }: any) => namespace !== undefined)
    assert.deepEqual([call?.namespace, call?.name], ['agents', 'close_agent'], `${model} ${JSON.stringify(whole)}`)

    const streamed = await (await g.call('/v1/responses', key, { ...GROUPED, input, model, stream: true })).text()
    const last = JSON.parse(/^data: (.*"response\.completed".*)$/m.exec(streamed)?.[1] ?? '{}')
    assert.ok(
      callsIn(last.response).some(({ name, namespace }: any) => name === 'close_agent' && namespace === 'agents'),
      `${model} ${streamed}`,
    )

    const items = [{ role: 'user', content: 'Close it.' }, call]
    const results = [{ type: 'function_call_output', call_id: call.call_id, output: 'It is closed.' }]
    assert.match(
      await textOf(g.call('/v1/responses', key, { ...GROUPED, model, input: [...items, ...results] })),
      /It is closed/,
    )
  }
})

test('names of tools in namespaces fit every vendor, and one that is taken is not given twice', async () => {
  const tools = [{ ...CLOSE, name: 'agents__close_agent' }, ...GROUPED.tools]
  const answer = await g.call('/v1/responses', key, { model: 'gamma-v4-pro', input: 'Hello', tools })
  assert.equal(answer.status, 200, await answer.text())
  const names: string[] = sent().tools.map((tool: any) => tool.function.name)
  assert.equal(new Set(names).size, 4, names.join())
  for (const name of names) assert.match(name, /^[\w-]{1,64}$/)

  for (const [tool, param] of [
    [{ type: 'namespace', tools: [] }, 'tools[0].name'],
    [{ type: 'namespace', name: 'a' }, 'tools[0].tools'],
    [{ type: 'namespace', name: 'a', tools: [7] }, 'tools[0].tools[0]'],
    [{ type: 'namespace', name: 'a', tools: [{ type: 'function' }] }, 'tools[0].tools[0].name'],
  ] as const) {
    const refused = await g.call('/v1/responses', key, { model: 'gamma-v4-pro', input: 'Hello', tools: [tool] })
    assert.equal(refused.status, 400)
    assert.equal(((await refused.json()) as any).error.param, param)
  }
})

test('temperature 0, as agents send it, is answered by models of every kind in every format', async () => {
  const messages = [{ role: 'user', content: 'Hello' }]
  for (const model of EVERY_KIND)
    for (const [path, body] of [
      ['/v1/chat/completions', { messages }],
      ['/v1/responses', { input: 'Hello' }],
      ['/beta/v1/messages', { messages, max_tokens: 100 }],
    ] as const) {
      await textOf(g.call(path, key, { ...body, model, temperature: 0 }))
    }
  await g.call('/v1/chat/completions', key, { messages, model: 'zeta-m3', temperature: 0 })
  assert.equal(sent().temperature, 0.01)
  await g.call('/v1/chat/completions', key, { messages, model: 'gamma-v4-pro', temperature: 0 })
  assert.equal(sent().temperature, 0)
  // What else is out of its range is the vendor's to refuse.
  const refused = await g.call('/v1/chat/completions', key, { messages, model: 'zeta-m3', temperature: 1.5 })
  assert.equal(refused.status, 400)
})

test('a simulated model calls the tool that a person names, and none that only a reminder mentions', async () => {
  const reminder = '<system-reminder>\nUse Read and TaskCreate to plan your tasks. Skill: loop\n</system-reminder>'
  const tools = ['Read', 'TaskCreate', 'Skill'].map((name) => ({
    name,
    description: 'Plans tasks, reads files and greets people who say hello to you.',
    input_schema: { type: 'object', properties: {} },
  }))
  const ask = async (...content: unknown[]) => {
    const body = { model: 'beta-sonnet-5', max_tokens: 500, tools, messages: content }
    const answer: any = await (await g.call('/beta/v1/messages', key, body)).json()
    return answer.content.flatMap(({ type, name }: any) => (type === 'tool_use' ? [name] : []))
  }
  const texts = (...all: string[]) => ({ role: 'user', content: all.map((text) => ({ type: 'text', text })) })
  assert.deepEqual(await ask(texts(reminder, 'Hello', reminder)), [])
  assert.deepEqual(await ask(texts(reminder, 'Please look at notes.txt. Use Read.')), ['Read'])
  // A reminder after the result is no new question.
  const use = { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'Read', input: {} }] }
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'Noon.' }
  const results = { role: 'user', content: [result, { type: 'text', text: reminder }] }
  assert.deepEqual(await ask(texts(reminder, 'Look at it. Use Read.'), use, results), [])
})
