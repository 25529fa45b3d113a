// Ready-to-run examples for a model or an endpoint, in three languages. The key is always a variable: its value is never
// written into a page after its dialog closed.
import type { ModelType, PublicEndpoint } from '../wire.ts'
import { audioSnippet } from './audio-snippet.ts'
import { pythonData, pythonMedia, typescriptData, typescriptMedia } from './client-snippet.ts'
import { namedArguments, origin, typescript } from './snippet-words.ts'

export const LANGUAGES = ['curl', 'python', 'typescript'] as const
type Language = (typeof LANGUAGES)[number]
export const LANGUAGE_NAMES: Record<Language, string> = { curl: 'curl', python: 'Python', typescript: 'TypeScript' }

export type Subject =
  | { kind: PostKind; model: string; body?: Body }
  | { kind: 'data'; endpoint: PublicEndpoint; values?: Record<string, string> }

/** Text models are asked in several formats; those of every other type in one, which has the type's name. */
type PostKind = 'chat' | 'responses' | 'messages' | 'gemini' | Exclude<ModelType, 'text' | 'data'>
type Body = Record<string, unknown>

const DEFAULT_PROMPT = 'Say hello in three languages.'

const BODIES: Record<PostKind, () => Body> = {
  chat: () => ({ messages: [{ role: 'user', content: DEFAULT_PROMPT }] }),
  responses: () => ({ input: DEFAULT_PROMPT }),
  messages: () => ({ max_tokens: 512, messages: [{ role: 'user', content: DEFAULT_PROMPT }] }),
  gemini: () => ({ contents: [{ role: 'user', parts: [{ text: DEFAULT_PROMPT }] }] }),
  embedding: () => ({ input: ['The gate is open.', 'The barrier is up.'] }),
  rerank: () => ({ query: 'When does the gate open?', documents: ['It opens at dawn.', 'A recipe for soup.'] }),
  moderation: () => ({ input: ['A kind word.', 'Another one.'] }),
  transcription: () => ({ response_format: 'json' }),
  speech: () => ({ input: 'The gate is open.', voice: 'alloy' }),
  image: () => ({ prompt: 'A lighthouse at dusk, watercolour', size: '1024x1024' }),
  video: () => ({ prompt: 'A paper boat drifts down a stream', duration: 5 }),
}

/** Put in by the build, from the table of endpoints. */
declare const ENDPOINT_PATHS: Record<PostKind, string>
export const PATHS = ENDPOINT_PATHS

/** Those that are called with the openai package: below which address, by which method, and where the result stands. */
const OPENAI: Partial<Record<PostKind, { base: string; method: string; result: string }>> = {
  chat: { base: 'v1', method: 'chat.completions.create', result: 'answer.choices[0].message.content' },
  responses: { base: 'alpha', method: 'responses.create', result: 'answer.output_text' },
  embedding: { base: 'v1', method: 'embeddings.create', result: 'answer.data[0].embedding' },
  moderation: { base: 'v1', method: 'moderations.create', result: 'answer.results[0].flagged' },
}

export function snippet(language: Language, subject: Subject): string {
  if (subject.kind === 'data') return dataSnippet(language, subject.endpoint, subject.values)
  const body = { model: subject.model, ...(subject.body ?? BODIES[subject.kind]()) }
  if (subject.kind === 'gemini') return googleSnippet(language, subject.model)
  if (subject.kind === 'transcription' || subject.kind === 'speech')
    return audioSnippet(language, PATHS[subject.kind], body)
  if (language === 'curl') return curlPost(PATHS[subject.kind], body)
  return language === 'python' ? pythonPost(subject.kind, body) : typescriptPost(subject.kind, body)
}

function curlPost(path: string, body: unknown): string {
  return [
    `curl ${origin()}${path} \\`,
    '  -H "Authorization: Bearer $TOLLGATE_KEY" \\',
    '  -H "Content-Type: application/json" \\',
    `  -d '${JSON.stringify(body, null, 2).replaceAll('\n', '\n  ').replaceAll("'", "'\\''")}'`,
  ].join('\n')
}

/** The one format that has the model in its address. */
function googleSnippet(language: Language, model: string): string {
  const asked = `model="${model}", contents="${DEFAULT_PROMPT}"`
  if (language === 'curl') return curlPost(PATHS.gemini.replace('{model}', encodeURIComponent(model)), BODIES.gemini())
  if (language === 'python')
    return [
      'import os',
      'from google import genai',
      '',
      `client = genai.Client(api_key=os.environ["TOLLGATE_KEY"], http_options={"base_url": "${origin()}/gemini"})`,
      `answer = client.models.generate_content(${asked})`,
      'print(answer.text)',
    ].join('\n')
  return [
    "import { GoogleGenAI } from '@google/genai'",
    '',
    `const httpOptions = { baseUrl: '${origin()}/gemini' }`,
    'const ai = new GoogleGenAI({ apiKey: process.env.TOLLGATE_KEY, httpOptions })',
    `const answer = await ai.models.generateContent({ model: '${model}', contents: '${DEFAULT_PROMPT}' })`,
    'console.log(answer.text)',
  ].join('\n')
}

function pythonPost(kind: PostKind, body: Body): string {
  const openai = OPENAI[kind]
  if (kind === 'rerank')
    return [
      'import os',
      'from openai import OpenAI',
      '',
      `client = OpenAI(base_url="${origin()}/v1", api_key=os.environ["TOLLGATE_KEY"])`,
      `answer = client.post("/rerank", cast_to=object, body=${JSON.stringify(body)})`,
      'print(answer["results"])',
    ].join('\n')
  if (openai)
    return [
      'import os',
      'from openai import OpenAI',
      '',
      `client = OpenAI(base_url="${origin()}/${openai.base}", api_key=os.environ["TOLLGATE_KEY"])`,
      `answer = client.${openai.method}(`,
      ...namedArguments(body),
      ')',
      body.stream ? 'for chunk in answer:\n    print(chunk)' : `print(${openai.result})`,
    ].join('\n')
  if (kind === 'messages')
    return [
      'import os',
      'from anthropic import Anthropic',
      '',
      `client = Anthropic(base_url="${origin()}/beta", api_key=os.environ["TOLLGATE_KEY"])`,
      'answer = client.messages.create(',
      ...namedArguments(body),
      ')',
      'print(answer.content[0].text)',
    ].join('\n')
  return pythonMedia(kind === 'video' ? 'video' : 'image', body)
}

function typescriptPost(kind: PostKind, body: Body): string {
  const shown = typescript(body)
  const openai = OPENAI[kind]
  if (kind === 'rerank')
    return [
      "import OpenAI from 'openai'",
      '',
      `const client = new OpenAI({ baseURL: '${origin()}/v1', apiKey: process.env.TOLLGATE_KEY })`,
      `const answer = await client.post('/rerank', { body: ${shown} })`,
      'console.log(answer.results)',
    ].join('\n')
  if (openai)
    return [
      "import OpenAI from 'openai'",
      '',
      `const client = new OpenAI({ baseURL: '${origin()}/${openai.base}', apiKey: process.env.TOLLGATE_KEY })`,
      `const answer = await client.${openai.method}(${shown})`,
      body.stream ? 'for await (const chunk of answer) console.log(chunk)' : `console.log(${openai.result})`,
    ].join('\n')
  if (kind === 'messages')
    return [
      "import Anthropic from '@anthropic-ai/sdk'",
      '',
      `const client = new Anthropic({ baseURL: '${origin()}/beta', apiKey: process.env.TOLLGATE_KEY })`,
      `const answer = await client.messages.create(${shown})`,
      'console.log(answer.content)',
    ].join('\n')
  return typescriptMedia(kind === 'video' ? 'video' : 'image', shown, body.stream === true)
}

function dataSnippet(language: Language, endpoint: PublicEndpoint, values?: Record<string, string>): string {
  const given = values ?? exampleValues(endpoint)
  if (language === 'curl')
    return `curl "${origin()}${endpointUrl(endpoint, given)}" \\\n  -H "Authorization: Bearer $TOLLGATE_KEY"`
  return language === 'python' ? pythonData(endpoint, given) : typescriptData(endpoint, given)
}

/** The path with its parameters in place, and the query. Empty values are left out. */
export function endpointUrl(endpoint: PublicEndpoint, values: Record<string, string>): string {
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

function exampleValues(endpoint: PublicEndpoint): Record<string, string> {
  return Object.fromEntries(
    endpoint.params.filter((param) => param.required).map((param) => [param.name, param.example ?? '']),
  )
}
