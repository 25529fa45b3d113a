// Programs for JavaScript with their defaults: two majors of the AI SDK, and OpenAI's Agents SDK, Realtime included.
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { assert, type TestContext, test, testGateway } from '../gateway.ts'
import { npmPackages, runProgram } from '../sdk/cache.ts'

let key: string
const g = testGateway({}, async () => {
  key = (await g.account({ credits: 100_000_000_000n })).key
})

async function run(t: TestContext, packages: readonly string[], program: string): Promise<unknown> {
  const made = await npmPackages(packages)
  if ('missing' in made) {
    console.log(`${packages[0]} was not tested: ${made.missing}`)
    t.skip(made.missing)
    return undefined
  }
  const room = join(g.config.TOLLGATE_DATA, `program-${packages[0]?.replaceAll(/\W+/g, '-')}`)
  await mkdir(room)
  await symlink(join(made.directory, 'node_modules'), join(room, 'node_modules'))
  await writeFile(join(room, 'program.mjs'), program)
  const ran = await runProgram(process.execPath, ['program.mjs'], {
    cwd: room,
    env: { PATH: process.env.PATH, HOME: room, GATEWAY: g.url, OPENAI_API_KEY: key },
    timeoutMs: 120_000,
  })
  assert.equal(ran.code, 0, `${ran.out}\n${ran.err}`.slice(-4_000))
  return JSON.parse(ran.out.trim().split('\n').at(-1) ?? '')
}

const AI_SDK = `import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, streamText } from 'ai'
const { GATEWAY, OPENAI_API_KEY: apiKey } = process.env
const openai = createOpenAI({ apiKey, baseURL: GATEWAY + '/v1' })
const anthropic = createAnthropic({ apiKey, baseURL: GATEWAY + '/beta/v1' })
const models = [
  openai('alpha-5.4'), openai.chat('gamma-v4-pro'), openai.completion('gamma-v4-pro'),
  anthropic('beta-sonnet-4-6'), anthropic('beta-opus-5'),
]
const texts = []
for (const model of models) {
  texts.push((await generateText({ model, prompt: 'Say hello.', maxRetries: 0 })).text)
  texts.push(await streamText({ model, prompt: 'Count.', maxRetries: 0 }).text)
}
console.log(JSON.stringify(texts))
`

const AI_SDKS = [
  ['ai@6.0.322', '@ai-sdk/openai@3.0.141', '@ai-sdk/anthropic@3.0.137'],
  ['ai@7.0.169', '@ai-sdk/openai@4.0.114', '@ai-sdk/anthropic@4.0.102'],
]

for (const packages of AI_SDKS)
  test(`${packages[0]} answers and streams in four formats, legacy completions among them`, async (t) => {
    const texts = await run(t, packages, AI_SDK)
    if (texts === undefined) return
    assert.ok(Array.isArray(texts) && texts.length === 10)
    for (const text of texts) assert.ok(text.length > 0, JSON.stringify(texts))
  })

const AGENTS = `import { Agent, OpenAIChatCompletionsModel, run, setDefaultOpenAIClient, setTracingDisabled } from '@openai/agents'
import { OpenAIRealtimeWebSocket, RealtimeAgent, RealtimeSession } from '@openai/agents/realtime'
import OpenAI from 'openai'
const { GATEWAY, OPENAI_API_KEY: apiKey } = process.env
setDefaultOpenAIClient(new OpenAI({ apiKey, baseURL: GATEWAY + '/v1' }))
setTracingDisabled(true)
const { finalOutput } = await run(new Agent({ name: 'A', instructions: 'Be brief.', model: 'alpha-5.4' }), 'Hello')
const url = GATEWAY.replace('http', 'ws') + '/v1/realtime?model=alpha-realtime-1'
const transport = new OpenAIRealtimeWebSocket({ url })
const session = new RealtimeSession(new RealtimeAgent({ name: 'R', instructions: 'You are a pirate.' }), { transport, model: 'alpha-realtime-1' })
const seen = { instructions: [], leftOut: [], errors: [] }
const done = new Promise((resolve) => {
  session.on('transport_event', (event) => {
    if (event.type === 'session.updated') {
      seen.instructions.push(event.session.instructions)
      seen.leftOut.push(...(event.left_out ?? []))
      if (seen.instructions.length === 1) session.sendMessage('Hello there')
    }
    if (event.type === 'response.done') resolve(event.response.status)
  })
  session.on('error', (error) => seen.errors.push(JSON.stringify(error).slice(0, 500)))
})
await session.connect({ apiKey, url })
const status = await done
session.close()
console.log(JSON.stringify({ finalOutput, status, ...seen }))
process.exit(0)
`

test('OpenAI’s Agents SDK answers, and its Realtime agent keeps its instructions with all defaults', async (t) => {
  const said = (await run(t, ['@openai/agents@0.20.0', 'zod@4.6.7'], AGENTS)) as Record<string, string[]> | undefined
  if (said === undefined) return
  assert.ok(said.finalOutput?.length)
  assert.equal(String(said.status), 'completed')
  assert.deepEqual(said.errors, [])
  assert.ok(said.instructions?.includes('You are a pirate.'), JSON.stringify(said))
  assert.ok(said.leftOut?.includes('audio.input.transcription'), JSON.stringify(said))
})
