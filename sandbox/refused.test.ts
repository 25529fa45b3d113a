// What the vendors refuse, their simulations refuse, in the same words.
import { realWorld } from '../src/kernel/world.ts'
import { fixtureOf } from '../test/fixture.ts'
import { assert, started, test } from '../test/kit.ts'
import { startSandbox } from './server.ts'

type Json = Record<string, unknown>
interface Door {
  readonly path: string
  /** A good request. */
  readonly body: Json
  /** The member of the error that says what is wrong, and what else it has. */
  readonly says: 'message' | 'param' | 'code'
  readonly also?: Json
}
const messages = [{ role: 'user', content: 'Hello' }]
const also = { type: 'invalid_request_error' }
const film = { model: 'doubao-seedance-2-0-260128', content: [{ type: 'text', text: 'A fox' }] }
const DOORS: Readonly<Record<string, Door>> = {
  'openai-chat': { path: '/openai/chat/completions', body: { messages }, says: 'message', also },
  'anthropic-messages': { path: '/anthropic/v1/messages', body: { max_tokens: 100, messages }, says: 'message', also },
  'openai-responses': { path: '/openai/responses', body: { model: 'alpha-5.4', input: 'Hello' }, says: 'message' },
  images: { path: '/openai/images/generations', body: { model: 'alpha-image-2', prompt: 'A fox' }, says: 'param' },
  video: { path: '/ark/contents/generations/tasks', body: film, says: 'code' },
}
const HEADERS = { authorization: 'Bearer sk-any', 'anthropic-version': '2023-06-01' }

const sandbox = started(() => startSandbox({ world: realWorld }))

const cases = fixtureOf<Record<string, [promise: string, over: Json, words: string][]>>('sandbox-refused.yaml')
for (const [name, { path, body, says, also }] of Object.entries(DOORS))
  for (const [promise, over, words] of cases[name]!)
    test(`what the vendor refuses, the sandbox refuses: ${name}, ${promise}`, async () => {
      const sent = JSON.stringify({ ...body, ...over }, (_, value) => (value === 'absent' ? undefined : value))
      const response = await fetch(sandbox.url + path, { method: 'POST', headers: HEADERS, body: sent })
      const answer = (await response.json()) as { type?: string; error: Json }
      assert.equal(response.status, 400)
      assert.match(String(answer.error[says]), new RegExp(words))
      assert.partialDeepStrictEqual(answer.error, also ?? {})
      if (name === 'anthropic-messages') assert.equal(answer.type, 'error')
    })
