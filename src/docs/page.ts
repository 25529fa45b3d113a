// The HTML of the documentation's pages. Everything that comes from a document is escaped on its way in.
import { marked } from 'marked'
import { exampleBody, isDataEndpoint, type JsonSchema } from '../catalog/endpoint.ts'
import { ENDPOINTS } from '../catalog/index.ts'
import { kindRow } from '../meter/kind.ts'
import { ORIGIN } from '../server/address.ts'

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

interface PageOptions {
  readonly title: string
  /** An entry without an address is the heading of those that follow. */
  readonly menu: ReadonlyArray<{ href?: string; title: string }>
  readonly here: string
  readonly body: string
  /** What was searched for, to go on from. */
  readonly query?: string
}

export function page({ title, menu, here, body, query = '' }: PageOptions): string {
  const links = menu.map(({ href, title: text }) =>
    href === undefined
      ? `<li class="group">${escapeHtml(text)}</li>`
      : `<li><a href="${href}"${href === here ? ' aria-current="page"' : ''}>${escapeHtml(text)}</a></li>`,
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · Tollgate</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/style.css">
<script type="module" src="/docs/client.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header><a class="brand" href="/docs">Tollgate</a><form action="/docs/search" role="search"><input type="search" name="q" aria-label="Search the documentation" placeholder="Search" maxlength="100" value="${escapeHtml(query)}"></form><a href="/console">Console</a></header>
<div class="columns">
<nav aria-label="Documentation"><ul>${links.join('')}</ul></nav>
<main id="content">${body}</main>
</div>
</body>
</html>`
}

interface Listed {
  readonly path: string
  readonly method: string
  readonly operation: Operation
}

export function operationsOf(document: JsonSchema): Listed[] {
  const paths = document.paths as Record<string, Record<string, Operation>>
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
}

export function referenceBody(document: JsonSchema): string {
  const all = operationsOf(document)
  const sections = (document.tags as Array<{ name: string }>).map(({ name }) => {
    const operations = all.filter(({ operation }) => operation.tags.includes(name))
    return `<section><h2 id="${slug(name)}">${escapeHtml(name)}</h2>${operations.map((one) => operationHtml(one, document)).join('')}</section>`
  })
  return `<h1>API reference</h1><p>Send <code>Authorization: Bearer &lt;key&gt;</code> with every request. Every answer has an <code>x-request-id</code>.</p>${sections.join('')}`
}

/** The tab of the playground that serves an operation, with the example filled in. */
function playgroundOf({ path, method }: Listed): string | undefined {
  const spec = ENDPOINTS.find((one) => one.path === path && one.method === method)
  if (!spec?.sells) return undefined
  if (isDataEndpoint(spec)) {
    const query = new URLSearchParams({ endpoint: spec.id })
    for (const [name, field] of Object.entries(spec.params)) if (field.required) query.append(name, field.example ?? '')
    return `${spec.id.startsWith('social') ? 'social' : 'analytics'}?${query}`
  }
  const tab = kindRow(spec.sells).tab ?? spec.sells
  const example = exampleBody(spec)
  const query = new URLSearchParams()
  for (const name of ['model', 'prompt', 'query']) if (name in example) query.set(name, String(example[name]))
  const texts = example.input ?? example.documents
  if (spec.sells === 'text') query.set('message', 'Say hello in three languages.')
  else if (texts !== undefined) query.set('text', [texts].flat().join('\n'))
  return `${tab}?${query}`
}

function operationHtml(listed: Listed, document: JsonSchema): string {
  const { path, method, operation } = listed
  const { parameters, requestBody, responses } = operation
  const { 'application/json': asJson, 'multipart/form-data': asForm } = requestBody?.content ?? {}
  const body = (asJson ?? asForm)?.schema
  const answer = answerOf(operation, document)
  const tryIt = playgroundOf(listed)
  const request = curlOf({ path, method, origin: ORIGIN, operation }, document)
  return `<details class="operation" id="${operation.operationId}"><summary><span class="method ${method.toLowerCase()}">${method}</span> <code>${escapeHtml(path)}</code> <span class="title">${escapeHtml(operation.summary)}</span></summary>
<div class="inside">${inline(operation.description)}
${
  parameters.length > 0
    ? `<h4>Parameters</h4>${table(
        ['Name', 'In', 'Type', 'Description'],
        parameters.map((field) => [
          nameCell(field.name, field.required),
          escapeHtml(field.in),
          typeText(field.schema),
          inline(field.description ?? ''),
        ]),
      )}`
    : ''
}
${body ? `<h4>Body</h4>${schemaTable(resolved(body, document))}` : ''}
<h4>Example</h4><pre tabindex="0"><code>${escapeHtml(request)}</code></pre>
${answer === undefined ? '' : `<p>Its answer has this shape:</p><pre tabindex="0"><code>${escapeHtml(answer)}</code></pre>`}
${tryIt === undefined ? '' : `<p><a class="try" href="/console/try/${escapeHtml(tryIt)}">Try it in the playground</a></p>`}
<h4>Answers</h4>${table(
    ['Status', 'Meaning'],
    Object.entries(responses).map(([status, { description }]) => [status, inline(description)]),
  )}
</div></details>`
}

function schemaTable(schema: JsonSchema): string {
  const properties = (schema.properties ?? {}) as Record<string, JsonSchema>
  const required = new Set((schema.required ?? []) as string[])
  const rows = Object.entries(properties).map(([name, field]) => [
    nameCell(name, required.has(name)),
    typeText(field),
    inline(String(field.description ?? '')),
  ])
  return rows.length > 0
    ? table(['Field', 'Type', 'Description'], rows)
    : `<p>${inline(String(schema.description ?? 'A JSON object.'))}</p>`
}

function nameCell(name: string, required: boolean): string {
  return `<code>${escapeHtml(name)}</code>${required ? ' <span class="required">required</span>' : ''}`
}

function typeText(schema: JsonSchema): string {
  const type = Array.isArray(schema.type)
    ? schema.type.join(' or ')
    : String(schema.type ?? (schema.oneOf || schema.anyOf ? 'one of several' : 'any'))
  const choices = Array.isArray(schema.enum)
    ? `: ${schema.enum.map((value) => `<code>${escapeHtml(String(value))}</code>`).join(', ')}`
    : ''
  const range = [
    schema.minimum === undefined ? '' : `from ${schema.minimum}`,
    schema.maximum === undefined ? '' : `to ${schema.maximum}`,
  ]
    .filter(Boolean)
    .join(' ')
  const preset = schema.default === undefined ? '' : `, default <code>${escapeHtml(String(schema.default))}</code>`
  return `${escapeHtml(type)}${choices}${range ? ` ${range}` : ''}${preset}`
}

function table(head: readonly string[], rows: ReadonlyArray<readonly string[]>): string {
  return `<div class="scroll"><table><thead><tr>${head.map((cell) => `<th scope="col">${cell}</th>`).join('')}</tr></thead><tbody>${rows.map((row) => `<tr>${row.map((cell) => `<td>${cell}</td>`).join('')}</tr>`).join('')}</tbody></table></div>`
}

/** Our own words, with code and emphasis; angle brackets are text. */
function inline(text: string): string {
  return marked.parse(text.replaceAll('<', '&lt;'), { async: false, gfm: true })
}

function slug(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
}

// Examples of an operation: a request that can be run as it stands, and an answer made of its schema.

const DEPTH_MAX = 7

interface Operation {
  readonly tags: readonly string[]
  readonly summary: string
  readonly description: string
  readonly operationId: string
  readonly parameters: ReadonlyArray<{
    name: string
    in: string
    required: boolean
    description?: string
    schema: JsonSchema
    example?: unknown
  }>
  readonly requestBody?: {
    content: { 'application/json'?: { schema: JsonSchema }; 'multipart/form-data'?: { schema: JsonSchema } }
  }
  readonly responses: Readonly<
    Record<string, { description: string; content?: Record<string, { schema: JsonSchema }> }>
  >
}

/** What a reference leads to. */
function resolved(schema: JsonSchema, document: JsonSchema): JsonSchema {
  const name = /^#\/components\/schemas\/(\w+)$/.exec(String(schema.$ref ?? ''))?.[1]
  // The document is our own: its components are schemas by their names.
  const { schemas } = document.components as { schemas: Record<string, JsonSchema> }
  return (name === undefined ? undefined : schemas[name]) ?? schema
}

// What stands inside a schema of ours is a schema.
const schemaIn = (value: unknown) => value as JsonSchema

/** A value that the schema allows: its own example where it has one, else made of its parts. */
function exampleOf(given: JsonSchema, document: JsonSchema, depth = 0): unknown {
  const schema = resolved(given, document)
  if (Array.isArray(schema.examples) && schema.examples.length > 0) return schema.examples[0]
  for (const name of ['example', 'default', 'const'] as const) if (schema[name] !== undefined) return schema[name]
  if (Array.isArray(schema.enum)) return schema.enum[0]
  const choices = schema.oneOf ?? schema.anyOf ?? schema.allOf
  if (Array.isArray(choices) && choices.length > 0) return exampleOf(schemaIn(choices[0]), document, depth + 1)
  const type = Array.isArray(schema.type) ? schema.type[0] : (schema.type ?? (schema.properties ? 'object' : 'null'))
  if (depth > DEPTH_MAX) return type === 'array' ? [] : type === 'object' ? {} : null
  switch (type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schemaIn(schema.properties ?? {})).map(([name, field]) => [
          name,
          exampleOf(schemaIn(field), document, depth + 1),
        ]),
      )
    case 'array':
      return schema.items ? [exampleOf(schemaIn(schema.items), document, depth + 1)] : []
    case 'integer':
    case 'number':
      return schema.minimum ?? 1
    case 'boolean':
      return true
    case 'string':
      return textOf(schema)
    default:
      return null
  }
}

function textOf({ format }: JsonSchema): string {
  if (format === 'date-time') return '2026-11-15T12:00:00.000Z'
  if (format === 'date') return '2026-11-15'
  return format === 'uri' ? 'https://example.com' : '…'
}

/** As it is typed into a terminal. */
function curlOf(
  at: { path: string; method: string; origin: string; operation: Operation },
  document: JsonSchema,
): string {
  const { parameters, requestBody } = at.operation
  let path = at.path
  const query = new URLSearchParams()
  for (const { name, in: place, required, schema, example } of parameters) {
    if (!required || (place !== 'path' && place !== 'query')) continue
    const value = String(example ?? exampleOf(schema, document))
    if (place === 'path')
      path = path.replace(`{${name}}`, encodeURIComponent(value).replaceAll('%E2%80%A6', `<${name}>`))
    else query.append(name, value)
  }
  const search = query.size > 0 ? `?${query}` : ''
  const key = at.path.startsWith('/admin/') ? 'TOLLGATE_OPERATOR_TOKEN' : 'TOLLGATE_KEY'
  const lines = [
    `curl ${at.method === 'GET' ? '' : `-X ${at.method} `}'${at.origin}${path}${search}'`,
    `  -H "Authorization: Bearer $${key}"`,
  ]
  const form = requestBody?.content['multipart/form-data']?.schema
  if (form)
    // What our own entries give as an example is an object.
    for (const [name, value] of Object.entries(exampleOf(form, document) as JsonSchema))
      lines.push(`  -F '${name}=${value}'`)
  const body = requestBody?.content['application/json']?.schema
  if (body) {
    const text = JSON.stringify(exampleOf(body, document), null, 2).replaceAll("'", "'\\''").replaceAll('\n', '\n  ')
    lines.push(`  -H 'Content-Type: application/json'`, `  -d '${text}'`)
  }
  return lines.join(' \\\n')
}

/** What a success answers, where it answers with JSON. */
function answerOf({ responses }: Operation, document: JsonSchema): string | undefined {
  const success = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1]
  const schema = success?.content?.['application/json']?.schema
  return schema && JSON.stringify(exampleOf(schema, document), null, 2)
}
