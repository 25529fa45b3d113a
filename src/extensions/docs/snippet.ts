// Ready-to-run examples for a model or an endpoint, in three languages. The key is always an environment variable: its
// value is never written into a page after its dialog closed.
import { KIND_NAMES, type KindName, kindRow } from '../../meter/kind.ts'

export const LANGUAGES = ['curl', 'python', 'typescript'] as const
export type Language = (typeof LANGUAGES)[number]
export const LANGUAGE_NAMES: Record<Language, string> = { curl: 'curl', python: 'Python', typescript: 'TypeScript' }

export type Subject = { kind: PostKind; model: string; body?: Body } | DataRequest

interface DataRequest {
  kind: 'data'
  endpoint: DataSubject
  values?: Record<string, string>
}

/** Text models have several formats; all other kinds have one, with the name of the kind. */
export type PostKind = 'chat' | 'responses' | 'messages' | 'gemini' | Exclude<KindName, 'text' | 'data' | 'realtime'>
type Body = Record<string, unknown>

const DEFAULT_PROMPT = 'Say hello in three languages.'

/** Text formats that the openai package supports: base path, method, and the path of the result. */
const OPENAI: Partial<Record<PostKind, OpenAiCall>> = {
  chat: { base: 'v1', method: 'chat.completions.create', result: 'choices[0].message.content' },
  responses: { base: 'alpha', method: 'responses.create', result: 'output_text' },
}

interface OpenAiCall {
  base: string
  method?: string
  result?: string
}

/** Undefined for formats with another package. */
function openaiCall(kind: PostKind): OpenAiCall | undefined {
  const type = KIND_NAMES.find((one) => one === kind)
  return (
    OPENAI[kind] ?? (type && type !== 'image' && type !== 'video' ? { base: 'v1', ...kindRow(type).openai } : undefined)
  )
}

export function snippet(language: Language, subject: Subject, at: Tables): string {
  if (subject.kind === 'data') return dataSnippet(language, subject, at)
  const { path, example } = postOf(subject.kind, at)
  const body = { model: subject.model, ...(subject.body ?? example) }
  if (subject.kind === 'gemini') return googleSnippet(language, subject.model, at)
  if (subject.kind === 'transcription' || subject.kind === 'speech') return audioSnippet(language, path, body, at)
  if (language === 'curl') return curlPost(path, body, at)
  return language === 'python' ? pythonPost(subject.kind, body, at) : typescriptPost(subject.kind, body, at)
}

function postOf(kind: PostKind, { posts }: Tables): Tables['posts'][string] {
  const found = posts[kind]
  if (!found) throw new Error(`The tables have no endpoint for ${kind}.`)
  return found
}

function curlPost(path: string, body: unknown, { origin }: Tables): string {
  return [
    `curl ${origin}${path} \\`,
    '  -H "Authorization: Bearer $TOLLGATE_KEY" \\',
    '  -H "Content-Type: application/json" \\',
    `  -d '${JSON.stringify(body, null, 2).replaceAll('\n', '\n  ').replaceAll("'", "'\\''")}'`,
  ].join('\n')
}

/** The one format that has the model in its address. */
function googleSnippet(language: Language, model: string, at: Tables): string {
  const { origin } = at
  const { path, example } = postOf('gemini', at)
  const asked = `model="${model}", contents="${DEFAULT_PROMPT}"`
  if (language === 'curl') return curlPost(path.replace('{model}', encodeURIComponent(model)), example, at)
  if (language === 'python')
    return [
      'import os',
      'from google import genai',
      '',
      `client = genai.Client(api_key=os.environ["TOLLGATE_KEY"], http_options={"base_url": "${origin}/gemini"})`,
      `answer = client.models.generate_content(${asked})`,
      'print(answer.text)',
    ].join('\n')
  return [
    "import { GoogleGenAI } from '@google/genai'",
    '',
    `const httpOptions = { baseUrl: '${origin}/gemini' }`,
    'const ai = new GoogleGenAI({ apiKey: process.env.TOLLGATE_KEY, httpOptions })',
    `const answer = await ai.models.generateContent({ model: '${model}', contents: '${DEFAULT_PROMPT}' })`,
    'console.log(answer.text)',
  ].join('\n')
}

/** The path relative to the client's base address. */
const below = (kind: PostKind, base: string, at: Tables) => postOf(kind, at).path.replace(`/${base}/`, '/')

function pythonPost(kind: PostKind, body: Body, at: Tables): string {
  const { origin } = at
  const openai = openaiCall(kind)
  if (openai) {
    const { base, method, result } = openai
    const head = [
      'import os',
      'from openai import OpenAI',
      '',
      `client = OpenAI(base_url="${origin}/${base}", api_key=os.environ["TOLLGATE_KEY"])`,
    ]
    if (!method) {
      const call = `answer = client.post("${below(kind, base, at)}", cast_to=object, body=${python(body)})`
      return [...head, call, result ? `print(answer["${result}"])` : 'print(answer)'].join('\n')
    }
    const shown = body.stream ? 'for chunk in answer:\n    print(chunk)' : `print(answer.${result})`
    return [...head, `answer = client.${method}(`, ...namedArguments(body), ')', shown].join('\n')
  }
  if (kind === 'messages')
    return [
      'import os',
      'from anthropic import Anthropic',
      '',
      `client = Anthropic(base_url="${origin}/beta", api_key=os.environ["TOLLGATE_KEY"])`,
      'answer = client.messages.create(',
      ...namedArguments(body),
      ')',
      'print(answer.content[0].text)',
    ].join('\n')
  return pythonMedia(kind === 'video' ? 'video' : 'image', body, at)
}

function typescriptPost(kind: PostKind, body: Body, at: Tables): string {
  const { origin } = at
  const shown = typescript(body)
  const openai = openaiCall(kind)
  if (openai) {
    const { base, method, result } = openai
    const call = method ? `${method}(${shown})` : `post('${below(kind, base, at)}', { body: ${shown} })`
    return [
      "import OpenAI from 'openai'",
      '',
      `const client = new OpenAI({ baseURL: '${origin}/${base}', apiKey: process.env.TOLLGATE_KEY })`,
      `const answer = await client.${call}`,
      body.stream
        ? 'for await (const chunk of answer) console.log(chunk)'
        : `console.log(answer${result ? `.${result}` : ''})`,
    ].join('\n')
  }
  if (kind === 'messages')
    return [
      "import Anthropic from '@anthropic-ai/sdk'",
      '',
      `const client = new Anthropic({ baseURL: '${origin}/beta', apiKey: process.env.TOLLGATE_KEY })`,
      `const answer = await client.messages.create(${shown})`,
      'console.log(answer.content)',
    ].join('\n')
  return typescriptMedia(kind === 'video' ? 'video' : 'image', shown, body.stream === true, at)
}

function dataSnippet(language: Language, { endpoint, values }: DataRequest, at: Tables): string {
  const given = values ?? exampleValues(endpoint)
  if (language === 'curl')
    return `curl "${at.origin}${endpointUrl(endpoint, given)}" \\\n  -H "Authorization: Bearer $TOLLGATE_KEY"`
  return language === 'python' ? pythonData(endpoint, given, at) : typescriptData(endpoint, given, at)
}

/** The path with its parameters in place, and the query. Empty values are left out. */
export function endpointUrl(endpoint: DataSubject, values: Record<string, string>): string {
  let path = endpoint.path
  const query = new URLSearchParams()
  for (const { name } of endpoint.params) {
    const value = values[name] ?? ''
    if (path.includes(`{${name}}`)) path = path.replace(`{${name}}`, encodeURIComponent(value))
    else if (value !== '') query.append(name, value)
  }
  const search = query.toString()
  return `${path}${search ? `?${search}` : ''}`
}

function exampleValues(endpoint: DataSubject): Record<string, string> {
  return Object.fromEntries(
    endpoint.params.filter((param) => param.required).map((param) => [param.name, param.example ?? '']),
  )
}

// Examples with the clients for TypeScript and Python: images, videos and data. The key is TOLLGATE_KEY in the
// environment.

type Origin = Pick<Tables, 'origin'>

const typescriptHead = ({ origin }: Origin) => [
  "import { Tollgate } from 'tollgate-client'",
  '',
  `const client = new Tollgate({ baseUrl: '${origin}' })`,
]
const pythonHead = ({ origin }: Origin) => [
  'from tollgate_client import Tollgate',
  '',
  `client = Tollgate(base_url="${origin}")`,
]

const RESULTS = { image: 'image.png', video: 'video.mp4' }

function typescriptMedia(kind: 'image' | 'video', body: string, stream: boolean, at: Origin): string {
  const shown = body.replace(/\n {2}stream: (?:true|false),?/, '').replace(/,(\n\})$/, '$1')
  const lines = stream
    ? [`for await (const event of client.images.stream(${shown})) console.log(event)`]
    : kind === 'image'
      ? [
          `const { data, cost } = await client.images.generate(${shown}).save('${RESULTS.image}')`,
          'console.log(data[0]?.url, cost)',
        ]
      : [
          `const video = await client.videos.create(${shown})`,
          'await video.wait({ onProgress: (job) => console.log(job.status) })',
          `await video.save('${RESULTS.video}')`,
        ]
  return [...typescriptHead(at), ...lines].join('\n')
}

function pythonMedia(kind: 'image' | 'video', { stream, ...body }: Record<string, unknown>, at: Origin): string {
  const given = namedArguments(body)
  const lines =
    stream === true
      ? ['for event in client.images.stream(', ...given, '):', '    print(event)']
      : kind === 'image'
        ? [
            'image = client.images.generate(',
            ...given,
            `).save("${RESULTS.image}")`,
            'print(image.data[0].url, image.cost)',
          ]
        : [
            'video = client.videos.create(',
            ...given,
            ')',
            'video.wait(on_progress=lambda job: print(job.status))',
            `video.save("${RESULTS.video}")`,
          ]
  return [...pythonHead(at), ...lines].join('\n')
}

/** Converts the text of form fields to numbers, lists and booleans for the clients. */
function valueOfParam(param: DataSubject['params'][number], value: string): unknown {
  switch (param.kind) {
    case 'integer':
      return Number(value)
    case 'boolean':
      return value === 'true'
    case 'list':
      return value.split(',').map((item) => item.trim())
    case 'json-array':
      return value
    default:
      return value
  }
}

function partsOf(endpoint: DataSubject, values: Record<string, string>, { calls }: Tables) {
  const call = calls[endpoint.id]
  const given = endpoint.params.filter(({ name }) => (values[name] ?? '') !== '')
  const first = given.find(({ name }) => name === call?.first)
  const rest = given
    .filter((param) => param !== first)
    .map((param): [string, unknown] => [param.name, valueOfParam(param, values[param.name] ?? '')])
  return { call, first: first && (values[first.name] ?? ''), rest: Object.fromEntries(rest) }
}

function typescriptData(endpoint: DataSubject, values: Record<string, string>, at: Tables): string {
  const { call, first, rest } = partsOf(endpoint, values, at)
  const parts = [
    ...(first === undefined ? [] : [JSON.stringify(first)]),
    ...(Object.keys(rest).length > 0 ? [typescript(rest)] : []),
  ]
  const line = `const answer = await client.${call?.typescript}(${parts.join(', ')})`
  return [...typescriptHead(at), line, 'console.log(answer, answer.cost)'].join('\n')
}

function pythonData(endpoint: DataSubject, values: Record<string, string>, at: Tables): string {
  const { call, first, rest } = partsOf(endpoint, values, at)
  const named = Object.fromEntries(Object.entries(rest).map(([name, value]) => [call?.names[name] ?? name, value]))
  const lines = [
    `answer = client.${call?.python}(`,
    ...(first === undefined ? [] : [`    ${python(first)},`]),
    ...namedArguments(named),
    ')',
    'print(answer, answer.cost)',
  ]
  return [...pythonHead(at), ...lines].join('\n')
}

// Examples for audio, which is sent and received as a file.

const FILE = 'recording.wav'
const SOUND = 'speech.mp3'

function audioSnippet(language: 'curl' | 'python' | 'typescript', path: string, body: Body, at: Origin): string {
  const isHeard = path.endsWith('/transcriptions')
  if (language === 'curl') return isHeard ? curlForm(path, body, at) : curlSound(path, body, at)
  return language === 'python' ? pythonSound(isHeard, body, at) : typescriptSound(isHeard, body, at)
}

function curlForm(path: string, body: Body, { origin }: Origin): string {
  const fields = Object.entries(body).map(([name, value]) => `  -F ${name}=${String(value)}`)
  const head = [`curl ${origin}${path} \\`, '  -H "Authorization: Bearer $TOLLGATE_KEY" \\', `  -F file=@${FILE} \\`]
  return [...head, fields.join(' \\\n')].join('\n')
}

function curlSound(path: string, body: Body, { origin }: Origin): string {
  return [
    `curl ${origin}${path} -o ${SOUND} \\`,
    '  -H "Authorization: Bearer $TOLLGATE_KEY" \\',
    '  -H "Content-Type: application/json" \\',
    `  -d '${JSON.stringify(body, null, 2).replaceAll("'", "'\\''")}'`,
  ].join('\n')
}

function pythonSound(isHeard: boolean, body: Body, { origin }: Origin): string {
  return [
    'import os',
    'from openai import OpenAI',
    '',
    `client = OpenAI(base_url="${origin}/v1", api_key=os.environ["TOLLGATE_KEY"])`,
    `answer = client.audio.${isHeard ? 'transcriptions' : 'speech'}.create(`,
    ...(isHeard ? [`    file=open("${FILE}", "rb"),`] : []),
    ...namedArguments(body),
    ')',
    isHeard ? 'print(answer.text)' : `answer.write_to_file("${SOUND}")`,
  ].join('\n')
}

function typescriptSound(isHeard: boolean, body: Body, { origin }: Origin): string {
  const client = `const client = new OpenAI({ baseURL: '${origin}/v1', apiKey: process.env.TOLLGATE_KEY })`
  if (isHeard)
    return [
      "import { createReadStream } from 'node:fs'",
      "import OpenAI from 'openai'",
      '',
      client,
      `const file = createReadStream('${FILE}')`,
      `const answer = await client.audio.transcriptions.create({ file, ...${typescript(body)} })`,
      'console.log(answer.text)',
    ].join('\n')
  return [
    "import { writeFile } from 'node:fs/promises'",
    "import OpenAI from 'openai'",
    '',
    client,
    `const answer = await client.audio.speech.create(${typescript(body)})`,
    `await writeFile('${SOUND}', Buffer.from(await answer.arrayBuffer()))`,
  ].join('\n')
}

// Values in the syntax of Python and TypeScript, and data for examples. Also built into the console, so that its
// examples and those of the documentation are the same.

/** The data of an endpoint for its example. */
interface DataSubject {
  readonly id: string
  readonly path: string
  readonly params: readonly {
    readonly name: string
    readonly kind: string
    readonly required?: boolean | undefined
    readonly example?: string | undefined
  }[]
}

/** How a data endpoint is called in the clients for TypeScript and Python. */
export interface ClientCall {
  /** Below the client: `analytics.websites.visitsTrend`. */
  readonly typescript: string
  readonly python: string
  /** The parameter that is given on its own, before the others. */
  readonly first?: string
  /** The Python name of each parameter. */
  readonly names: Readonly<Record<string, string>>
}

export interface Tables {
  /** The address of the gateway. */
  readonly origin: string
  /** Paid endpoints by their id where several sell the same kind, else by the kind. */
  readonly posts: Readonly<
    Record<string, { readonly id: string; readonly path: string; readonly example: Readonly<Record<string, unknown>> }>
  >
  readonly calls: Readonly<Record<string, ClientCall>>
}

/** Names without quotation marks where the language needs none. */
export const typescript = (value: unknown): string =>
  JSON.stringify(value, null, 2).replace(/^( +)"([a-zA-Z_]\w*)":/gm, '$1$2:')

export function namedArguments(body: Record<string, unknown>): string[] {
  return Object.entries(body).map(([name, value]) => `    ${name}=${python(value).replaceAll('\n', '\n    ')},`)
}

/** JSON and Python differ only in true, false and null. */
export function python(value: unknown): string {
  return JSON.stringify(value, null, 4).replace(/^(.*: )?(true|false|null)(,?)$/gm, (_, lead = '', word, comma) => {
    const words: Record<string, string> = { true: 'True', false: 'False', null: 'None' }
    return `${lead}${words[word]}${comma}`
  })
}
