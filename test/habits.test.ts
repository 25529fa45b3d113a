// What clients send by habit: a temperature in every request, a tool by its name, and the body of any call to be
// quoted.
import { assert, test, testGateway } from './gateway.ts'

const g = testGateway({ isShared: true })

/** The head of a PNG file of one pixel. */
const PICTURE = `data:image/png;base64,${Buffer.from('89504e470d0a1a0a0000000d494844520000000100000001080200000000000000', 'hex').toString('base64')}`
const messages = [{ role: 'user', content: 'What is the weather in Oslo?' }]
const tool = (name: string) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } },
})

test('a low temperature in every request stops no model of the families that take none', async () => {
  const { key } = await g.account()
  const { models } = g.gateway.catalog.current.document
  const text = Object.entries(models).filter(([, model]) => model.enabled && model.type === 'text')
  assert.ok(text.length >= 24)
  // One vendor's temperatures begin above zero, and it says so.
  for (const [model, { clientFormats }] of text)
    for (const temperature of model.startsWith('zeta') ? [0.1] : [0, 0.1]) {
      const answer = await g.call('/v1/chat-completions', key, { model, messages, temperature, max_tokens: 100 })
      assert.equal(answer.status, 200, `${model} at ${temperature}: ${await answer.text()}`)
      if (!clientFormats.includes('anthropic-messages')) continue
      const native = await g.call('/beta/v1/messages', key, { model, messages, temperature, max_tokens: 100 })
      assert.equal(native.status, 200, `${model} at ${temperature}, natively: ${await native.text()}`)
    }
})

test('a named tool_choice is kept for a model that takes words only', async () => {
  const { key } = await g.account()
  const ask = async (tool_choice: unknown) => {
    const tools = ['get_time', 'get_weather', 'get_news'].map(tool)
    const answer = await g.call('/v1/chat-completions', key, { model: 'epsilon-k3', messages, tools, tool_choice })
    const body = (await answer.json()) as {
      choices: Array<{ message: { tool_calls?: Array<{ function: { name: string } }> } }>
    }
    assert.equal(answer.status, 200, JSON.stringify(body))
    return body.choices[0]!.message.tool_calls?.map((call) => call.function.name)
  }
  assert.deepEqual(await ask({ type: 'function', function: { name: 'get_news' } }), ['get_news'])
  const allowed = [{ type: 'function', function: { name: 'get_time' } }]
  const only = { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: allowed } }
  assert.deepEqual(await ask(only), ['get_time'])
})

test('a quote takes whatever the call itself takes, of every kind and format', async () => {
  const { id, key } = await g.account()
  const input_schema = { type: 'object', properties: {} }
  const bodies: [path: string, body: Record<string, unknown>][] = [
    ['/v1/chat-completions', { model: 'alpha-5.4', messages, tools: [tool('f')] }],
    ['/v1/chat-completions', { model: 'beta-opus-5', messages, max_tokens: 100 }],
    ['/alpha/responses', { model: 'alpha-5.4', input: 'Hi', tools: [{ type: 'function', name: 'f' }] }],
    [
      '/alpha/responses',
      { model: 'alpha-5.4', input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }] },
    ],
    ['/beta/v1/messages', { model: 'beta-opus-5', messages, max_tokens: 100 }],
    ['/beta/v1/messages', { model: 'beta-opus-5', messages, max_tokens: 100, tools: [{ name: 'f', input_schema }] }],
    [
      '/beta/v1/messages',
      { model: 'beta-opus-5', messages, max_tokens: 100, system: 'Be brief.', stop_sequences: ['x'] },
    ],
    [
      '/beta/v1/messages',
      {
        model: 'beta-opus-4-5',
        max_tokens: 100,
        tools: [{ name: 'f', input_schema }],
        messages: [
          ...messages,
          { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'rain' }] },
        ],
      },
    ],
    ['/alpha/v1/images/generations', { model: 'alpha-image-2', prompt: 'A boat', size: '1024x1024', quality: 'low' }],
    ['/alpha/v1/images/generations', { model: 'alpha-image-2', prompt: 'A boat', image_urls: [PICTURE] }],
    ['/v1/video/seedance', { model: 'videogen-2.0', prompt: 'A boat', duration: 5 }],
  ]
  for (const [path, body] of bodies) {
    const before = await g.balance(id)
    const quote = await g.call('/v1/quote', key, body)
    const said = (await quote.json()) as { data: { product: string; costAtMost: string } }
    assert.equal(quote.status, 200, `${path}: ${JSON.stringify(said)}`)
    assert.equal(said.data.product, body.model)
    assert.ok(Number(said.data.costAtMost) > 0)
    assert.equal((await g.balance(id)).posted, before.posted)
    const real = await g.call(path, key, body)
    assert.ok(real.ok, `${path}: ${await real.clone().text()}`)
    await real.text()
  }
})

test('a quote refuses what every call would refuse, and names the field', async () => {
  const { id, key } = await g.account()
  const refused: [body: object, status: number, says: RegExp][] = [
    [{ model: 'alpha-5.4' }, 400, /messages/],
    [{ model: 'alpha-5.4', input: 5 }, 400, /input/],
    [{ model: 'beta-opus-5', messages, max_tokens: 0.5, system: 'x' }, 400, /max_tokens/],
    [{ model: 'alpha-5.4', messages, service_tier: 'priority' }, 400, /service_tier/],
    [{ model: 'alpha-image-2', prompt: 'A boat', n: 2 }, 400, /n.{1,3} must be 1/],
    [{ model: 'none', messages }, 404, /model/],
    [{ messages }, 400, /model/],
  ]
  for (const [body, status, says] of refused) {
    const answer = await g.call('/v1/quote', key, body)
    const said = await answer.text()
    assert.equal(answer.status, status, said)
    assert.match(said, says)
  }
  const { key: narrow } = await g.key(id, { models: ['alpha-5.5'] })
  assert.equal((await g.call('/v1/quote', narrow, { model: 'alpha-5.4', messages })).status, 403)
})
