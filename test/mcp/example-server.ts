// The tools, resources and prompts that the conformance suite presupposes, behind the gateway's own door to the
// protocol.
import {
  createRequestStateCodec,
  inputRequired,
  inputResponse,
  MissingRequiredClientCapabilityError,
  UriTemplate,
} from '@modelcontextprotocol/server'
import type { ApiKeys } from '../../src/admission/api-key.ts'
import { createApi } from '../../src/api/api.ts'
import { createServer } from '../../src/api/server/server.ts'
import { mountFetch } from '../../src/extensions/agents/fetch-route.ts'
import type { Prompt, Resource } from '../../src/extensions/agents/mcp/mcp.ts'
import {
  InputNeeded,
  objectSchema,
  type Tool,
  type ToolAnswer,
  type ToolCall,
} from '../../src/extensions/agents/mcp/tool.ts'
import { createTransport } from '../../src/extensions/agents/mcp/transport.ts'
import { Fault } from '../../src/kernel/fault.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { realWorld } from '../../src/kernel/world.ts'
import { createByteBudget } from '../../src/upstream/budget.ts'

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=='

const codec = createRequestStateCodec<{ round: number }>({ key: 'a key of thirty-two bytes or more, for tests' })
const image = { type: 'image', data: PNG, mimeType: 'image/png' } as const
const embedded = (uri: string, mimeType: string, text: string) =>
  ({ type: 'resource', resource: { uri, mimeType, text } }) as const
const say = (text: string): ToolAnswer => ({ structured: undefined, text })

const ask = (message: string, properties: Record<string, { type: 'string' } | { type: 'boolean' }>) =>
  inputRequired.elicit({ message, requestedSchema: { type: 'object', properties, required: Object.keys(properties) } })
const name = ask('What is your name?', { name: { type: 'string' } })
const capital = inputRequired.createMessage({
  messages: [{ role: 'user', content: { type: 'text', text: 'What is the capital of France?' } }],
  maxTokens: 100,
})
type Inputs = Record<string, ReturnType<typeof inputRequired.elicit>>

/** Asks for what has not been answered. */
function need({ request }: ToolCall, inputRequests: Inputs, requestState?: string): void {
  const missing = Object.keys(inputRequests).some(
    (key) => inputResponse(request.inputResponses, key).kind === 'missing',
  )
  if (missing) throw new InputNeeded(inputRequired({ inputRequests, ...(requestState ? { requestState } : {}) }))
}

const state = async (round: number) => codec.mint({ round })

const RUN: Record<string, (call: ToolCall) => ToolAnswer | Promise<ToolAnswer>> = {
  test_simple_text: () => say('This is a simple text response for testing.'),
  test_image_content: () => ({ ...say(''), content: [image] }),
  test_audio_content: () => ({ ...say(''), content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] }),
  test_embedded_resource: () => ({
    ...say(''),
    content: [embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  }),
  test_multiple_content_types: () => ({
    ...say('Multiple content types test:'),
    content: [image, embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}')],
  }),
  test_error_handling() {
    throw new Fault('request_invalid', { message: 'This tool intentionally returns an error for testing' })
  },
  async test_tool_with_progress({ progress }) {
    for (const done of [0, 50, 100]) progress(done, 100, `${done} of 100`)
    return say('done')
  },
  test_missing_capability() {
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } })
  },
  test_streaming_elicitation(call) {
    call.progress(1, 2, 'half')
    need(call, { name })
    return say('done')
  },
  async test_logging_tool({ request }) {
    await request.log('info', 'a line for those who asked for it')
    return say('done')
  },
  test_input_required_result_elicitation(call) {
    need(call, { user_name: name })
    const given = inputResponse(call.request.inputResponses, 'user_name')
    return say(`Hello, ${given.kind === 'elicit' ? given.content?.name : 'nobody'}!`)
  },
  test_input_required_result_sampling(call) {
    need(call, { capital_question: capital })
    return say(JSON.stringify(call.request.inputResponses))
  },
  test_input_required_result_list_roots(call) {
    need(call, { client_roots: inputRequired.listRoots() })
    return say(JSON.stringify(call.request.inputResponses))
  },
  async test_input_required_result_request_state(call) {
    need(call, { confirm: ask('Please confirm', { ok: { type: 'boolean' } }) }, await state(1))
    return say(call.request.requestState<{ round: number }>()?.round === 1 ? 'state-ok' : 'state-lost')
  },
  async test_input_required_result_multiple_inputs(call) {
    need(call, { user_name: name, greeting: capital, client_roots: inputRequired.listRoots() }, await state(1))
    return say('all of it')
  },
  async test_input_required_result_multi_round(call) {
    const round = call.request.requestState<{ round: number }>()?.round ?? 0
    if (round === 0)
      need(call, { step1: ask('Step 1: What is your name?', { name: { type: 'string' } }) }, await state(1))
    if (round === 1)
      need(call, { step2: ask('Step 2: What is your favorite color?', { color: { type: 'string' } }) }, await state(2))
    return say('both rounds')
  },
  async test_input_required_result_tampered_state(call) {
    need(call, { confirm: ask('Please confirm', { ok: { type: 'boolean' } }) }, await state(1))
    return say('untouched')
  },
  test_input_required_result_capabilities(call) {
    need(call, call.canAsk ? { user_name: name } : { question: capital })
    return say('as you can')
  },
}

const JSON_SCHEMA_TOOL = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
}

const shared = { group: 'account', readOnly: true, openWorld: false, offered: () => true } as const
const tools: Tool[] = [
  ...Object.entries(RUN).map(([tool, run]) => ({
    ...shared,
    name: tool,
    title: tool,
    description: `An example: ${tool}.`,
    input: objectSchema({}),
    run: async (call: ToolCall) => run(call),
  })),
  {
    ...shared,
    name: 'json_schema_2020_12_tool',
    title: 'Schemas',
    description: 'Its schema is passed on whole.',
    input: JSON_SCHEMA_TOOL,
    run: async () => say('done'),
  },
]

const resource = (uri: string, mimeType: string, read: Resource['read']): Resource => ({
  uri,
  mimeType,
  read,
  name: uri,
  title: uri,
  description: `An example: ${uri}.`,
})
const resources: Resource[] = [
  resource('test://static-text', 'text/plain', async () => ({
    text: 'This is the content of the static text resource.',
  })),
  resource('test://static-binary', 'image/png', async () => ({ blob: PNG })),
  {
    ...resource('test://template/{id}/data', 'application/json', async (_, uri) => ({
      text: JSON.stringify({ id: uri.split('/')[3], templateTest: true, data: `Data for ID: ${uri.split('/')[3]}` }),
    })),
    template: new UriTemplate('test://template/{id}/data'),
  },
]

const user = (content: any) => [{ role: 'user' as const, content }]
const prompt = (title: string, names: string[], write: Prompt['write']): Prompt => ({
  name: title,
  title,
  description: `An example: ${title}.`,
  write,
  arguments: names.map((one) => ({ name: one, description: one, required: true })),
})
const prompts: Prompt[] = [
  prompt('test_simple_prompt', [], () => user({ type: 'text', text: 'This is a simple prompt for testing.' })),
  prompt('test_prompt_with_arguments', ['arg1', 'arg2'], ({ arg1, arg2 }) =>
    user({ type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` }),
  ),
  prompt('test_prompt_with_embedded_resource', ['resourceUri'], ({ resourceUri }) => [
    ...user(embedded(resourceUri!, 'text/plain', 'Embedded resource content for testing.')),
    ...user({ type: 'text', text: 'Please process the embedded resource above.' }),
  ]),
  prompt('test_prompt_with_image', [], () => [...user(image), ...user({ type: 'text', text: 'Please analyze it.' })]),
  prompt('test_input_required_result_prompt', [], (_, request) => {
    const inputRequests = { user_context: ask('What context should the prompt use?', { context: { type: 'string' } }) }
    if (inputResponse(request.inputResponses, 'user_context').kind === 'missing')
      throw new InputNeeded(inputRequired({ inputRequests }))
    return user({ type: 'text', text: 'With that context.' })
  }),
]

export async function startExampleServer(): Promise<{ url: string; close(): Promise<unknown> }> {
  const app = createServer({ world: realWorld, log: silentLog, strictErrors: false })
  const principal = { keyId: '', accountId: '', models: null, endpoints: null, expiresAtMs: 0, addresses: null }
  // Whom the suite is, is not what it tests.
  const keys = { known: () => principal } as unknown as ApiKeys
  let url = 'http://127.0.0.1'
  const api = createApi(app, {
    keys,
    strictErrors: false,
    log: silentLog,
    world: realWorld,
    admit: () => undefined,
    budget: createByteBudget({ world: realWorld, bytesMax: 100_000_000, queueMax: 10 }),
    bodies: { world: realWorld, bytesPerSecondMin: 1 },
  })
  mountFetch(api, ['/mcp'], {
    publicUrl: () => url,
    challenge: () => 'Bearer',
    answer: createTransport({
      resources,
      prompts,
      world: realWorld,
      log: silentLog,
      instructions: 'Examples.',
      tool: (_guest, wanted) => tools.find(({ name }) => name === wanted),
      list: () =>
        tools.map(({ name, title, description, input }) => ({
          name,
          title,
          description,
          inputSchema: { ...input, type: 'object' as const },
        })),
      options: { requestState: { verify: codec.verify } },
    }),
  })
  url = await app.listen({ port: 0, host: '127.0.0.1' })
  return { url, close: () => app.close() }
}
