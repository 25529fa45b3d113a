// Ready-to-run examples for a model or an endpoint, in three languages. The key is always a variable: its value is never
// written into a page after its dialog closed.
import { KIND_NAMES, type KindName, kindRow } from '../meter/kind.ts'
import { audioSnippet } from './snippet-audio.ts'
import { pythonData, pythonMedia, typescriptData, typescriptMedia } from './snippet-client.ts'
import { type DataSubject, namedArguments, python, type Tables, typescript } from './snippet-words.ts'

export type { Tables } from './snippet-words.ts'

export const LANGUAGES = ['curl', 'python', 'typescript'] as const
export type Language = (typeof LANGUAGES)[number]
export const LANGUAGE_NAMES: Record<Language, string> = { curl: 'curl', python: 'Python', typescript: 'TypeScript' }

export type Subject = { kind: PostKind; model: string; body?: Body } | DataRequest

interface DataRequest {
  kind: 'data'
  endpoint: DataSubject
  values?: Record<string, string>
}

/** Text models are asked in several formats; those of every other type in one, which has the type's name. */
export type PostKind = 'chat' | 'responses' | 'messages' | 'gemini' | Exclude<KindName, 'text' | 'data' | 'realtime'>
type Body = Record<string, unknown>

const DEFAULT_PROMPT = 'Say hello in three languages.'

/** Text formats that are called with the openai package: below which address, by which method, and where the result stands. */
const OPENAI: Partial<Record<PostKind, OpenAiCall>> = {
  chat: { base: 'v1', method: 'chat.completions.create', result: 'choices[0].message.content' },
  responses: { base: 'alpha', method: 'responses.create', result: 'output_text' },
}

interface OpenAiCall {
  base: string
  method?: string
  result?: string
}

/** Undefined where another package has a way of its own. */
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

/** The path as a client knows it, below its own address. */
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
