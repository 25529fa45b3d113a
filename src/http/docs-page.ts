// The HTML of the documentation's pages. Everything that comes from a document is escaped on its way in.
import { marked } from 'marked'
import type { JsonSchema } from '../catalog/endpoint.ts'

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

interface PageOptions {
  readonly title: string
  /** An entry without an address is the heading of those that follow. */
  readonly menu: ReadonlyArray<{ href?: string; title: string }>
  readonly here: string
  readonly body: string
}

export function page({ title, menu, here, body }: PageOptions): string {
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
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header><a class="brand" href="/docs">Tollgate</a><a href="/console">Console</a></header>
<div class="columns">
<nav aria-label="Documentation"><ul>${links.join('')}</ul></nav>
<main id="content">${body}</main>
</div>
</body>
</html>`
}

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
  readonly requestBody?: { content: { 'application/json': { schema: JsonSchema } } }
  readonly responses: Readonly<Record<string, { description: string }>>
}

export function referenceBody(document: JsonSchema): string {
  const paths = document.paths as Record<string, Record<string, Operation>>
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  const sections = (document.tags as Array<{ name: string }>).map(({ name }) => {
    const operations = all.filter(({ operation }) => operation.tags.includes(name))
    return `<section><h2 id="${slug(name)}">${escapeHtml(name)}</h2>${operations.map((one) => operationHtml(one, document)).join('')}</section>`
  })
  return `<h1>API reference</h1><p>Send <code>Authorization: Bearer &lt;key&gt;</code> with every request. Every answer has an <code>x-request-id</code>.</p>${sections.join('')}`
}

/** What a reference leads to. */
function resolved(schema: JsonSchema, document: JsonSchema): JsonSchema {
  const name = /^#\/components\/schemas\/(\w+)$/.exec(String(schema.$ref ?? ''))?.[1]
  const { schemas } = document.components as { schemas: Record<string, JsonSchema> }
  return (name === undefined ? undefined : schemas[name]) ?? schema
}

function operationHtml(
  { path, method, operation }: { path: string; method: string; operation: Operation },
  document: JsonSchema,
): string {
  const { parameters, requestBody, responses } = operation
  const body = requestBody?.content['application/json'].schema
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
