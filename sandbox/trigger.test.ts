import assert from 'node:assert/strict'
import { test } from 'node:test'
import { realWorld } from '../src/kernel/world.ts'
import { started } from '../test/started.ts'
import { until } from '../test/until.ts'
import { startSandbox } from './server.ts'

const sandbox = started(() => startSandbox({ world: realWorld }))

interface Sent {
  readonly path?: string
  readonly headers?: Record<string, string>
  readonly body?: Record<string, unknown>
  readonly signal?: AbortSignal
}

function send(prompt: string, { path = '/openai/chat/completions', headers = {}, body = {}, signal }: Sent = {}) {
  return fetch(sandbox.url + path, {
    method: 'POST',
    headers,
    redirect: 'manual',
    body: JSON.stringify({ model: 'alpha-5.4', messages: [{ role: 'user', content: prompt }], ...body }),
    ...(signal ? { signal } : {}),
  })
}

const stream = { body: { stream: true } }

for (const status of [400, 401, 402, 403, 404, 408, 429, 500, 502, 503, 529]) {
  test(`[[${status}]] answers ${status} in the vendor's words`, async () => {
    const response = await send(`Hello [[${status}]]`)
    assert.equal(response.status, status)
    const { error } = (await response.json()) as { error: { message: string; type: string } }
    assert.ok(error.message.length > 5 && error.type.length > 3)
  })
}

test('a status may bring its own words and a time to wait', async () => {
  const limited = await send('[[429 retry-after=3]]')
  assert.equal(limited.headers.get('retry-after'), '3')
  const refused = await send('[[400 this is my own message]]')
  assert.match(await refused.text(), /this is my own message/)
})

test('triggers work from the model name, the query and a header as well', async () => {
  assert.equal((await send('Hello', { body: { model: 'alpha-5.4[[503]]' } })).status, 503)
  assert.equal((await send('Hello', { path: '/openai/chat/completions?trigger=502' })).status, 502)
  assert.equal((await send('Hello', { headers: { 'x-sandbox-trigger': '[[500]]' } })).status, 500)
})

test('[[once=500 id]] fails the first time only', async () => {
  assert.equal((await send('[[once=500 abc]]')).status, 500)
  assert.equal((await send('[[once=500 abc]]')).status, 200)
  assert.equal((await send('[[once=500 other]]')).status, 500)
})

test('only the newest question is searched, so that an old fault does not haunt the conversation', async () => {
  const messages = [
    { role: 'user', content: '[[500]]' },
    { role: 'assistant', content: 'sorry' },
    { role: 'user', content: 'Hello' },
  ]
  assert.equal((await send('', { body: { messages } })).status, 200)
})

test('bad credentials are refused', async () => {
  assert.equal((await send('Hello', { headers: { authorization: 'Bearer sk-bad-1' } })).status, 401)
  assert.equal((await send('Hello', { headers: { 'x-api-key': 'sk-empty-1' } })).status, 402)
})

test('[[stall]] never answers, and the log tells when the client gave up', async () => {
  sandbox.seen.clear()
  const controller = new AbortController()
  const waiting = send('[[stall]]', { signal: controller.signal })
  await until(() => sandbox.seen.openCalls, 1)
  controller.abort()
  await assert.rejects(waiting)
  await until(() => sandbox.seen.aborted, 1)
  assert.equal(sandbox.seen.calls.at(-1)?.outcome, 'aborted')
})

test('[[chunks=N]] streams exactly that many pieces of text', async () => {
  const text = await (await send('[[chunks=200]]', stream)).text()
  assert.equal(text.match(/"delta":\{"content":"[^"]/g)?.length, 200)
})

test('[[tokens=N]] makes an answer of that length', async () => {
  const reply = (await (await send('[[tokens=5000]]')).json()) as { usage: { completion_tokens: number } }
  assert.ok(Math.abs(reply.usage.completion_tokens - 5000) < 200, String(reply.usage.completion_tokens))
})

test('[[stall-after=N]] stops after N pieces and leaves the connection open', async () => {
  sandbox.seen.clear()
  const controller = new AbortController()
  const response = await send('[[stall-after=10]]', { ...stream, signal: controller.signal })
  const reader = response.body?.getReader()
  await until(() => sandbox.seen.calls.map(({ chunks }) => chunks), [10])
  await reader?.read()
  assert.equal(sandbox.seen.calls[0]?.outcome, 'open')
  controller.abort()
  await until(() => sandbox.seen.aborted, 1)
})

test('[[cut=N]] breaks the connection after N pieces', async () => {
  sandbox.seen.clear()
  const response = await send('[[cut=5]]', stream)
  let received = ''
  await assert.rejects(async () => {
    for await (const piece of response.body ?? []) received += Buffer.from(piece).toString()
  })
  assert.equal(received.match(/data: /g)?.length, 5)
  await until(() => sandbox.seen.cut, 1)
  await assert.rejects((await send('[[cut]]')).text())
})

test('[[truncate=N]] ends the body after N bytes', async () => {
  assert.equal((await (await send('[[truncate=777]]', stream)).arrayBuffer()).byteLength, 777)
  assert.equal((await (await send('[[truncate=77]]')).arrayBuffer()).byteLength, 77)
})

test('[[slow=N]] waits between pieces', async () => {
  const started = performance.now()
  await (await send('[[slow=10]] [[chunks=10]]', stream)).text()
  assert.ok(performance.now() - started >= 95)
})

test('usage can be zero, missing or nonsense', async () => {
  const usage = async (trigger: string) =>
    ((await (await send(trigger)).json()) as { usage?: Record<string, unknown> }).usage
  assert.equal((await usage('[[zero-usage]]'))?.total_tokens, 0)
  assert.equal(await usage('[[no-usage]]'), undefined)
  assert.equal((await usage('[[bad-usage=-5]]'))?.completion_tokens, -5)
  assert.equal((await usage('[[bad-usage=many]]'))?.prompt_tokens, 'many')
  assert.equal((await usage('[[bad-usage=1e18]]'))?.prompt_tokens, 1e18)
})

test('[[error-in-stream=N]] reports an error after N pieces and never ends cleanly', async () => {
  const text = await (await send('[[error-in-stream=3]]', stream)).text()
  assert.equal(text.match(/data: /g)?.length, 4)
  assert.match(text, /"error":\{"message"/)
  assert.doesNotMatch(text, /\[DONE\]/)
})

test('[[empty]] has neither output nor finish', async () => {
  const text = await (await send('[[empty]]', stream)).text()
  assert.doesNotMatch(text, /"finish_reason":"|\[DONE\]|"content":"[^"]/)
})

test('[[big=N]] and [[huge-line=N]] send that many bytes', async () => {
  const big = await (await send('[[big=3000000]]', stream)).text()
  assert.ok(big.length > 3_000_000 && big.endsWith('data: [DONE]\n\n'))
  const whole = (await (await send('[[big=3000000]]')).json()) as { choices: { message: { content: string } }[] }
  assert.equal(whole.choices[0]?.message.content.length, 3_000_000)
  const line = await (await send('[[huge-line=3000000]]', stream)).text()
  assert.ok(line.indexOf('\n') > 3_000_000)
})

test('[[garbage]], [[html]], [[redirect=URL]] and [[set-cookie]] do what they say', async () => {
  const garbage = await send('[[garbage]]')
  assert.equal(garbage.status, 200)
  await assert.rejects(garbage.json())
  assert.match((await send('[[html]]')).headers.get('content-type') ?? '', /html/)
  const redirect = await send('[[redirect=http://127.0.0.1:9/]]')
  assert.equal(redirect.status, 302)
  assert.equal(redirect.headers.get('location'), 'http://127.0.0.1:9/')
  assert.match((await send('[[set-cookie]]')).headers.get('set-cookie') ?? '', /sandbox-session/)
})

test('several triggers work at once, and the log is there for other processes, without credentials', async () => {
  sandbox.seen.clear()
  const text = await (
    await send('[[no-usage]] [[chunks=3]] [[wait=1]]', {
      body: { stream: true, stream_options: { include_usage: true } },
      headers: { authorization: 'Bearer sk-very-secret' },
    })
  ).text()
  assert.doesNotMatch(text, /"usage":\{/)
  const log = await (await fetch(`${sandbox.url}/__sandbox/log`)).text()
  assert.match(log, /"requests":1/)
  assert.doesNotMatch(log, /very-secret/)
})
