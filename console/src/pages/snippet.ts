// Ready-to-run examples for a model or an endpoint, in three languages. The key is always a variable: its value is never
// written into a page after its dialog closed.
import type { ModelType, PublicEndpoint } from '../wire.ts'

export const LANGUAGES = ['curl', 'python', 'typescript'] as const
type Language = (typeof LANGUAGES)[number]
export const LANGUAGE_NAMES: Record<Language, string> = { curl: 'curl', python: 'Python', typescript: 'TypeScript' }

export type Subject =
  | { kind: PostKind; model: string; body?: Body }
  | { kind: 'data'; endpoint: PublicEndpoint; values?: Record<string, string> }

/** Text models are asked in several formats; those of every other type in one, which has the type's name. */
type PostKind = 'chat' | 'responses' | 'messages' | Exclude<ModelType, 'text' | 'data'>
type Body = Record<string, unknown>

const origin = () => window.location.origin

const DEFAULT_PROMPT = 'Say hello in three languages.'

const BODIES: Record<PostKind, () => Body> = {
  chat: () => ({ messages: [{ role: 'user', content: DEFAULT_PROMPT }] }),
  responses: () => ({ input: DEFAULT_PROMPT }),
  messages: () => ({ max_tokens: 512, messages: [{ role: 'user', content: DEFAULT_PROMPT }] }),
  embedding: () => ({ input: ['The gate is open.', 'The barrier is up.'] }),
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
}

export function snippet(language: Language, subject: Subject): string {
  if (subject.kind === 'data') return dataSnippet(language, subject.endpoint, subject.values)
  const body = { model: subject.model, ...(subject.body ?? BODIES[subject.kind]()) }
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

function pythonPost(kind: PostKind, body: Body): string {
  const openai = OPENAI[kind]
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
  const lines = [
    'import os, time, requests',
    '',
    'headers = {"Authorization": f"Bearer {os.environ[\'TOLLGATE_KEY\']}"}',
    `answer = requests.post("${origin()}${PATHS[kind]}", headers=headers, json=${python(body)})`,
    'answer.raise_for_status()',
  ]
  if (kind === 'image') lines.push('print(answer.json()["data"][0]["url"])')
  else
    lines.push(
      'job_id = answer.json()["data"]["jobId"]',
      'while True:',
      `    job = requests.get(f"${origin()}/v1/jobs/{job_id}", headers=headers).json()["data"]`,
      '    if job["status"] in ("COMPLETED", "FAILED", "CANCELLED"):',
      '        break',
      '    time.sleep(5)',
      'print(job["status"], job["outputResult"])',
    )
  return lines.join('\n')
}

function typescriptPost(kind: PostKind, body: Body): string {
  const shown = JSON.stringify(body, null, 2).replace(/^( +)"([a-zA-Z_]\w*)":/gm, '$1$2:')
  const openai = OPENAI[kind]
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
  const lines = [
    "const headers = { authorization: `Bearer ${process.env.TOLLGATE_KEY}`, 'content-type': 'application/json' }",
    `const answer = await fetch('${origin()}${PATHS[kind]}', {`,
    "  method: 'POST',",
    '  headers,',
    `  body: JSON.stringify(${shown.replaceAll('\n', '\n  ')}),`,
    '})',
  ]
  if (kind === 'image') lines.push('const { data } = await answer.json()', 'console.log(data[0].url)')
  else
    lines.push(
      'const { data: { jobId } } = await answer.json()',
      'for (;;) {',
      `  const { data: job } = await (await fetch(\`${origin()}/v1/jobs/\${jobId}\`, { headers })).json()`,
      "  if (['COMPLETED', 'FAILED', 'CANCELLED'].includes(job.status)) {",
      '    console.log(job.status, job.outputResult)',
      '    break',
      '  }',
      '  await new Promise((resolve) => setTimeout(resolve, 5000))',
      '}',
    )
  return lines.join('\n')
}

function dataSnippet(language: Language, endpoint: PublicEndpoint, values?: Record<string, string>): string {
  const url = origin() + endpointUrl(endpoint, values ?? exampleValues(endpoint))
  if (language === 'curl') return `curl "${url}" \\\n  -H "Authorization: Bearer $TOLLGATE_KEY"`
  if (language === 'python')
    return [
      'import os, requests',
      '',
      'answer = requests.get(',
      `    "${url}",`,
      '    headers={"Authorization": f"Bearer {os.environ[\'TOLLGATE_KEY\']}"},',
      ')',
      'answer.raise_for_status()',
      'print(answer.json())',
    ].join('\n')
  return [
    `const answer = await fetch('${url}', {`,
    '  headers: { authorization: `Bearer ${process.env.TOLLGATE_KEY}` },',
    '})',
    'console.log(await answer.json())',
  ].join('\n')
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

function namedArguments(body: Body): string[] {
  return Object.entries(body).map(([name, value]) => `    ${name}=${python(value).replaceAll('\n', '\n    ')},`)
}

/** JSON and Python agree on everything but three words. */
function python(value: unknown): string {
  return JSON.stringify(value, null, 4).replace(/^(.*: )?(true|false|null)(,?)$/gm, (_, lead = '', word, comma) => {
    const words: Record<string, string> = { true: 'True', false: 'False', null: 'None' }
    return `${lead}${words[word]}${comma}`
  })
}
