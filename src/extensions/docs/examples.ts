// Requests that can be run as they stand, in the languages and with the packages that people use. The code itself is
// made where the console takes it from: snippet.ts.

import { ORIGIN } from '../../api/server/address.ts'
import { exampleBody, isDataEndpoint, type JsonSchema } from '../../catalog/endpoint.ts'
import { bodyOf, exampleOf, type Listed } from './operation.ts'
import { snippetTables } from './reference.ts'
import { namedArguments, type PostKind, python, type Subject, snippet, typescript } from './snippet.ts'

interface Example {
  /** Of its tab: "Python · openai". */
  readonly label: string
  readonly language: 'sh' | 'py' | 'ts'
  readonly code: string
}

const TABLES = { origin: ORIGIN, ...snippetTables() }
const PACKAGES = [
  ['tollgate-client', /tollgate.client/],
  ['openai', /\bopenai\b/i],
  ['anthropic', /\banthropic\b/i],
  ['google-genai', /\bgenai\b/],
  ['httpx', /\bhttpx\b/],
] as const

function labelled(language: 'py' | 'ts', code: string): Example {
  const name = language === 'py' ? 'Python' : 'TypeScript'
  const used = PACKAGES.find(([, pattern]) => pattern.test(code))?.[0]
  return { label: used === undefined ? name : `${name} · ${used}`, language, code }
}

/** What the table of snippets knows: paid endpoints, of those that sell the same the first. */
function subjectOf({ spec }: Listed): Subject | undefined {
  // Products of the catalog are in no client of ours.
  if (!spec?.sells || spec.tag === 'Products') return undefined
  if (isDataEndpoint(spec)) {
    const params = Object.entries(spec.params).map(([name, field]) => ({ name, ...field }))
    return { kind: 'data', endpoint: { id: spec.id, path: spec.path, params } }
  }
  const kind = spec.format ? spec.id : spec.sells
  if (TABLES.posts[kind]?.id !== spec.id || !isKnown(kind)) return undefined
  return { kind, model: String(exampleBody(spec).model ?? spec.params?.model?.example ?? '') }
}

const isKnown = (kind: string): kind is PostKind => kind !== 'data' && kind !== 'text' && !kind.includes('/')

/** Of the clients of our own, text endpoints have these; data and media have theirs already. */
const TYPED = ['chat', 'responses', 'messages', 'embeddings']

function typedExamples({ spec }: Listed): Example[] {
  if (!spec || !TYPED.includes(spec.id)) return []
  const example = exampleBody(spec)
  const py = [
    'from tollgate_client import Tollgate',
    '',
    `client = Tollgate(base_url="${ORIGIN}")`,
    `answer = client.${spec.id}.create(`,
    ...namedArguments(example),
    ')',
    'print(answer, answer.cost)',
  ]
  const ts = [
    "import { Tollgate } from 'tollgate-client'",
    '',
    `const client = new Tollgate({ baseUrl: '${ORIGIN}' })`,
    `const answer = await client.${spec.id}.create(${typescript(example)})`,
    'console.log(answer, answer.cost)',
  ]
  return [labelled('py', py.join('\n')), labelled('ts', ts.join('\n'))]
}

/** The first tab is the one that needs nothing installed. */
export function examplesOf(listed: Listed, document: JsonSchema): Example[] {
  const subject = subjectOf(listed)
  if (!subject) return plainExamples(listed, document)
  return [
    { label: 'curl', language: 'sh', code: snippet('curl', subject, TABLES) },
    labelled('py', snippet('python', subject, TABLES)),
    labelled('ts', snippet('typescript', subject, TABLES)),
    ...typedExamples(listed),
  ]
}

interface Plain {
  readonly method: string
  readonly address: string
  readonly variable: string
  readonly body: unknown
  readonly isForm: boolean
}

function plainOf(listed: Listed, document: JsonSchema): Plain {
  let { path } = listed
  const query = new URLSearchParams()
  for (const { name, in: place, required, schema, example } of listed.operation.parameters) {
    if (!required || (place !== 'path' && place !== 'query')) continue
    const value = String(example ?? exampleOf(schema, document, sampleName(listed.path, name)))
    if (place === 'path') path = path.replace(`{${name}}`, encodeURIComponent(value))
    else query.append(name, value)
  }
  const schema = bodyOf(listed, document)
  return {
    method: listed.method,
    address: `${ORIGIN}${path}${query.size > 0 ? `?${query}` : ''}`,
    variable: listed.spec ? 'TOLLGATE_KEY' : 'TOLLGATE_OPERATOR_TOKEN',
    body: schema && exampleOf(schema, document),
    isForm: listed.operation.requestBody?.content['multipart/form-data'] !== undefined,
  }
}

/** `/keys/{id}` is about a key. */
function sampleName(path: string, name: string): string {
  if (name !== 'id') return name
  const before = path.slice(0, path.indexOf('{id}')).split('/').filter(Boolean).at(-1) ?? ''
  return { keys: 'key', usage: 'request', accounts: 'account' }[before] ?? name
}

function plainExamples(listed: Listed, document: JsonSchema): Example[] {
  const plain = plainOf(listed, document)
  return [
    { label: 'curl', language: 'sh', code: curlOf(plain) },
    labelled('py', pythonOf(plain)),
    labelled('ts', typescriptOf(plain)),
  ]
}

const membersOf = (body: unknown) => Object.entries((body ?? {}) as Record<string, unknown>) // Bodies of ours are objects.

function curlOf({ method, address, variable, body, isForm }: Plain): string {
  const lines = [
    `curl ${method === 'GET' ? '' : `-X ${method} `}'${address}'`,
    `  -H "Authorization: Bearer $${variable}"`,
  ]
  if (isForm) for (const [name, value] of membersOf(body)) lines.push(`  -F '${name}=${String(value)}'`)
  else if (body !== undefined) {
    const text = JSON.stringify(body, null, 2).replaceAll("'", "'\\''").replaceAll('\n', '\n  ')
    lines.push(`  -H 'Content-Type: application/json'`, `  -d '${text}'`)
  }
  return lines.join(' \\\n')
}

const isFile = ([, value]: [string, unknown]) => String(value).startsWith('@')

function pythonOf({ method, address, variable, body, isForm }: Plain): string {
  const members = membersOf(body)
  const files = members.filter(isFile).map(([name, value]) => `"${name}": open("${String(value).slice(1)}", "rb")`)
  const rest = Object.fromEntries(members.filter((member) => !isFile(member)))
  const sent = isForm
    ? [`    data=${python(rest).replaceAll('\n', '\n    ')},`, `    files={${files.join(', ')}},`]
    : body === undefined
      ? []
      : [`    json=${python(body).replaceAll('\n', '\n    ')},`]
  return [
    'import os',
    'import httpx',
    '',
    'answer = httpx.request(',
    `    "${method}",`,
    `    "${address}",`,
    `    headers={"Authorization": f"Bearer {os.environ['${variable}']}"},`,
    ...sent,
    ')',
    'print(answer.text)',
  ].join('\n')
}

function typescriptOf({ method, address, variable, body, isForm }: Plain): string {
  const bearer = ['`Bearer $', `{process.env.${variable}}`, '`'].join('')
  const members = membersOf(body)
  const form = isForm
    ? [
        "import { openAsBlob } from 'node:fs'",
        '',
        'const body = new FormData()',
        ...members.map((member) =>
          isFile(member)
            ? `body.append('${member[0]}', await openAsBlob('${String(member[1]).slice(1)}'), '${String(member[1]).slice(1)}')`
            : `body.append('${member[0]}', '${String(member[1])}')`,
        ),
      ]
    : []
  const json =
    body === undefined || isForm ? [] : [`  body: JSON.stringify(${typescript(body).replaceAll('\n', '\n  ')}),`]
  const type = json.length > 0 ? ", 'Content-Type': 'application/json'" : ''
  return [
    ...form,
    `const answer = await fetch('${address}', {`,
    ...(method === 'GET' ? [] : [`  method: '${method}',`]),
    `  headers: { Authorization: ${bearer}${type} },`,
    ...json,
    ...(isForm ? ['  body,'] : []),
    '})',
    'console.log(await answer.text())',
  ].join('\n')
}
