// Legacy completions: the openai package's `completions.create` unchanged, and the same over the network.
import OpenAI from 'openai'
import { assert, pluck, test, testGateway } from '../../../test/gateway.ts'

let key: string
let account: string
const g = testGateway({}, async () => {
  ;({ key, id: account } = await g.account())
})
const client = () => new OpenAI({ apiKey: key, baseURL: `${g.url}/v1`, maxRetries: 0 })
const MODELS = ['alpha-5.4', 'beta-sonnet-4-6', 'gamma-v4-pro', 'epsilon-k3']

const chargesOf = () => g.calls(account)

for (const model of MODELS)
  test(`${model}: a prompt is completed, whole and as a stream, at the price of a chat`, async () => {
    const prompt = 'Say hello.'
    const whole = await client().completions.create({ model, prompt, max_tokens: 100, logprobs: null, echo: false })
    assert.equal(whole.object, 'text_completion')
    assert.match(whole.id, /^cmpl-(?!chatcmpl)/)
    assert.equal(whole.model, model)
    const [choice] = whole.choices
    assert.ok(choice && choice.text.length > 0)
    assert.equal(choice.finish_reason, 'stop')
    assert.ok(whole.usage && whole.usage.total_tokens === whole.usage.prompt_tokens + whole.usage.completion_tokens)
    const chat = await client().chat.completions.create({
      model,
      max_tokens: 100,
      messages: [{ role: 'user', content: prompt }],
    })
    assert.equal(choice.text, chat.choices[0]?.message.content)
    const stream = await client().completions.create({
      model,
      prompt: [prompt],
      max_tokens: 100,
      stream: true,
      stream_options: { include_usage: true },
    })
    let text = ''
    let reason: string | null = null
    let tokens = 0
    for await (const { id, object, choices, usage } of stream) {
      assert.equal(object, 'text_completion')
      assert.match(id, /^cmpl-/)
      text += choices[0]?.text ?? ''
      reason = choices[0]?.finish_reason ?? reason
      tokens = usage?.total_tokens ?? tokens
    }
    assert.equal(text, choice.text)
    assert.equal(reason, 'stop')
    assert.equal(tokens, whole.usage?.total_tokens)
    const charges = (await chargesOf()).slice(-3)
    assert.deepEqual(new Set(charges.map(({ charged }) => charged)).size, 1, String(charges.map((one) => one.charged)))
    assert.deepEqual(pluck(charges, 'endpoint'), ['completions', 'chat', 'completions'])
  })

test('several prompts are answered in their order, and each is charged', async () => {
  const before = (await chargesOf()).length
  const asked = { model: 'gamma-v4-pro', prompt: ['The first.', 'The second.', 'The third.'], max_tokens: 60 }
  const send = () => g.call('/v1/completions', key, asked, { headers: { 'idempotency-key': 'three' } })
  const response = await send()
  const answer = (await response.json()) as OpenAI.Completion
  assert.deepEqual(pluck(answer.choices, 'index'), [0, 1, 2])
  for (const [at, word] of ['first', 'second', 'third'].entries()) {
    const alone = await client().completions.create({ ...asked, prompt: asked.prompt[at]! })
    assert.equal(answer.choices[at]?.text, alone.choices[0]?.text, word)
  }
  const charges = await chargesOf()
  assert.equal(charges.length, before + 6)
  const three = charges.slice(before, before + 3).reduce((sum, { charged }) => sum + charged, 0n)
  assert.equal(Number(response.headers.get('x-tollgate-charge')), Number(three) / 1e6)
  assert.deepEqual(await (await send()).json(), answer, 'sent again with its key')
  assert.equal((await chargesOf()).length, before + 6)
})

test('what a chat model cannot do is rejected by name, and nothing is held or charged', async () => {
  const before = (await chargesOf()).length
  const wrong: [members: object, words: RegExp][] = [
    [{ prompt: undefined }, /"prompt"/],
    [{ prompt: '' }, /"prompt"/],
    [{ prompt: [] }, /"prompt"/],
    [{ prompt: [1, 2] }, /"prompt/],
    [{ prompt: Array(21).fill('x') }, /"prompt" must hold 1 to 20/],
    [{ suffix: 'the end' }, /"suffix" is not offered/],
    [{ echo: true }, /"echo" is not offered/],
    [{ logprobs: 3 }, /"logprobs" is not offered/],
    [{ best_of: 3 }, /"best_of" is not offered/],
    [{ messages: [{ role: 'user', content: 'x' }] }, /"messages" is not offered/],
    [{ prompt: ['a', 'b'], stream: true }, /"stream" must be false/],
    [{ model: 'no-such' }, /no-such/],
    [{ temperature: 'hot' }, /"temperature"/],
  ]
  for (const [members, words] of wrong) {
    const response = await g.call('/v1/completions', key, { model: 'gamma-v4-pro', prompt: 'x', ...members })
    const { message } = (await response.json()) as { message: string }
    assert.ok(response.status === 400 || response.status === 404, `${response.status} ${message}`)
    assert.match(message, words)
  }
  assert.equal((await chargesOf()).length, before)
})

test('a vendor that fails is an error, whole and in a stream', async () => {
  const ask = (prompt: string | string[], stream: boolean) =>
    g.call('/v1/completions', key, { model: 'gamma-v4-pro', prompt, stream })
  for (const prompt of ['[[500]] x', ['fine', '[[500]] x']]) {
    const response = await ask(prompt, false)
    assert.ok(response.status >= 500, String(response.status))
    assert.equal(typeof ((await response.json()) as { code: number }).code, 'number')
  }
  const text = await (await ask('[[cut=3]] x', true)).text()
  assert.match(text, /"code":/)
  assert.ok((await g.call('/v1/completions', undefined, { model: 'gamma-v4-pro', prompt: 'x' })).status === 401)
})
