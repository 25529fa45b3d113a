// Calls are traced for OpenTelemetry, whatever they buy.
import { assert, jsonOf, started, startGateway, test, until } from '../../../test/gateway.ts'
import { startReceiver } from '../../../test/job-engine.ts'

const collector = started(() => startReceiver(() => 200))
const g = started(() => startGateway({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://${collector.host}` } }))

test('the span of a call has the names of the conventions for generative AI, and nothing of what was said', async () => {
  const { key } = await g.account()
  const trace = '1af7651916cd43dd8448eb211c80319c'
  const { usage } = await jsonOf<{ usage: { prompt_tokens: number; completion_tokens: number } }>(
    fetch(`${g.url}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'x-tollgate-session': 'session-1',
        traceparent: `00-${trace}-b7ad6b7169203331-01`,
      },
      body: JSON.stringify({ model: 'alpha-5.4', messages: [{ role: 'user', content: 'a secret boat' }] }),
    }),
  )
  const sent = await until(() => collector.got.find(({ body }) => body.includes(trace)))
  assert.ok(!sent.body.includes('a secret boat'))
  const spans: { traceId: string; kind: number; attributes?: { key: string; value: Record<string, string> }[] }[] =
    JSON.parse(sent.body).resourceSpans[0].scopeSpans[0].spans
  const server = spans.find(({ traceId, kind }) => traceId === trace && kind === 2)
  const told = Object.fromEntries(
    (server?.attributes ?? []).map(({ key: name, value }) => [name, Object.values(value)[0]]),
  )
  assert.equal(told['gen_ai.operation.name'], 'chat')
  assert.equal(told['gen_ai.provider.name'], 'alpha')
  assert.equal(told['gen_ai.request.model'], 'alpha-5.4')
  assert.equal(told['gen_ai.conversation.id'], 'session-1')
  assert.equal(told['gen_ai.usage.input_tokens'], String(usage.prompt_tokens))
  assert.equal(told['gen_ai.usage.output_tokens'], String(usage.completion_tokens))
  assert.ok(Number(told['gen_ai.usage.cost']) > 0)
  const figures = JSON.stringify(await g.gateway.figures())
  assert.match(figures, /gen_ai_client_token_usage/)
  assert.match(
    figures,
    /"gen_ai_provider_name":"alpha","gen_ai_request_model":"alpha-5.4","gen_ai_token_type":"output"/,
  )
})

test('a video creation belongs to the trace of its caller', async () => {
  const { key } = await g.account()
  const trace = '0af7651916cd43dd8448eb211c80319c'
  const answer = await fetch(`${g.url}/v1/video/seedance`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      traceparent: `00-${trace}-b7ad6b7169203331-01`,
    },
    body: JSON.stringify({ model: 'videogen-2.0', prompt: 'a boat' }),
  })
  assert.equal(answer.status, 200)
  await until(async () => collector.got.some(({ body }) => body.includes(trace)))
})
