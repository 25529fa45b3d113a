// Tool servers (MCP servers of others) in the catalog: the tools that are sold, each with the definition that the
// operator approved. Address, credential and limits are those of a vendor; price and routes are in `endpoints`, under
// `mcp/<server>/<tool>`.
import { createHash } from 'node:crypto'
import * as z from 'zod'
import type { CatalogDocument } from '../../../catalog/document.ts'
import type { JsonSchema, ToolSpec } from '../../../catalog/endpoint.ts'
import { checkValue } from '../../../catalog/json-schema.ts'
import type { CatalogSection } from '../../../catalog/section.ts'

declare module '../../../catalog/section.ts' {
  interface Sections {
    toolServers: z.output<typeof toolServers>
  }
  interface SectionInputs {
    toolServers?: z.input<typeof toolServers>
  }
}

export const serverName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,29}$/, 'must be up to 30 lower-case letters, digits or "-"')
/** As the protocol allows them. */
const TOOL_NAME = /^[\w./-]{1,128}$/
const DESCRIPTION_CHARS_MAX = 2_000
const SCHEMA_CHARS_MAX = 16_000
const SCHEMA_DEPTH_MAX = 20
/** The most that a server may list. */
export const TOOLS_MAX = 200
/** A result becomes part of a message to a model, so no client accepts more. */
const RESULT_BYTES_MAX = 16 * 1024 * 1024

/** The definition of a tool, cleaned and bounded by `readDefinition`. */
const definition = z.strictObject({
  title: z.string().max(200).optional(),
  description: z.string().max(DESCRIPTION_CHARS_MAX),
  inputSchema: z.record(z.string(), z.unknown()),
  outputSchema: z.record(z.string(), z.unknown()).optional(),
  readOnly: z.boolean().default(false),
  /** The tool is idempotent. */
  repeatable: z.boolean().default(false),
})
export type ToolDefinition = z.output<typeof definition>

const soldTool = z.strictObject({
  ...definition.shape,
  /** Its name at the server. */
  tool: z.string().regex(TOOL_NAME),
  /** The most results that are charged; the hold covers them. */
  resultsMax: z.number().int().positive().max(10_000).default(100),
})

const toolServers = z
  .record(
    serverName,
    z.strictObject({
      vendor: z.string(),
      title: z
        .string()
        .max(100)
        .refine((title) => title === visible(title), 'must be one line without invisible characters')
        .optional(),
      /**
       * Each person signs in at the server (OAuth), and their calls use their token. Absent: all callers share the
       * vendor's credential.
       */
      auth: z.literal('person').optional(),
      resultBytesMax: z.number().int().min(1_000).max(RESULT_BYTES_MAX).default(1_048_576),
      /** By the last part of their ids. */
      tools: z.record(z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,63}$/), soldTool).default({}),
    }),
  )
  .default({})

type SoldTool = z.output<typeof soldTool>

/** A tool on the path of a call. */
export interface ServerToolSpec extends ToolSpec {
  readonly server: string
  readonly sold: SoldTool
  readonly resultBytesMax: number
}

export const toolId = (server: string, slug: string) => `mcp/${server}/${slug}`

/** The tools that are listed: those with a price. */
export function toolSpecs({ toolServers, endpoints }: CatalogDocument): ServerToolSpec[] {
  return Object.entries(toolServers).flatMap(([server, { tools, resultBytesMax }]) =>
    Object.entries(tools).flatMap(([slug, sold]): ServerToolSpec[] => {
      const id = toolId(server, slug)
      if (!Object.hasOwn(endpoints, id)) return []
      return [
        {
          isTool: true,
          id,
          product: id,
          restriction: `mcp/${server}`,
          server,
          sold,
          resultBytesMax,
          method: 'POST',
          path: '/mcp',
          aliases: [],
          tag: 'Account and models',
          surface: 'native',
          sells: 'data',
          title: sold.title ?? sold.tool,
          description: sold.description,
        },
      ]
    }),
  )
}

// Parsing of tool definitions, which are untrusted.

/** The definition without invisible characters, or why the tool cannot be sold. */
export function readDefinition(given: {
  readonly name: string
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly inputSchema?: unknown
  readonly outputSchema?: unknown
  readonly annotations?:
    | { readonly title?: unknown; readonly readOnlyHint?: unknown; readonly idempotentHint?: unknown }
    | undefined
}): ToolDefinition | string {
  if (!TOOL_NAME.test(given.name)) return 'its name is not one that clients take'
  const input = cleaned(given.inputSchema)
  const output = given.outputSchema === undefined ? undefined : cleaned(given.outputSchema)
  if (input === undefined || (given.outputSchema !== undefined && output === undefined))
    return `its schemas are no objects, cannot be read, are deeper than ${SCHEMA_DEPTH_MAX} or longer than ${SCHEMA_CHARS_MAX} characters`
  const title = given.title ?? given.annotations?.title
  return {
    ...(typeof title === 'string' && title !== '' ? { title: visible(title).slice(0, 200) } : {}),
    description: visible(given.description ?? '')
      .slice(0, DESCRIPTION_CHARS_MAX)
      .toWellFormed(),
    inputSchema: input,
    ...(output ? { outputSchema: output } : {}),
    readOnly: given.annotations?.readOnlyHint === true,
    repeatable: given.annotations?.readOnlyHint === true || given.annotations?.idempotentHint === true,
  }
}

/** Removes control characters and invisible characters, which can hide instructions. */
export function visible(text: string): string {
  return text
    .replaceAll(/[\p{Cf}\p{Co}\p{Cs}\u{E0000}-\u{E007F}]+/gu, '')
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim()
}

function cleaned(schema: unknown): JsonSchema | undefined {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return undefined
  const copy = clean(schema, 0)
  if (copy === undefined || JSON.stringify(copy).length > SCHEMA_CHARS_MAX) return undefined
  try {
    checkValue(copy as JsonSchema, {}) // A copy of an object is one.
    return copy as JsonSchema // The same.
  } catch {
    return undefined
  }
}

/**
 * A copy of a schema; undefined if any part cannot be copied. Patterns are removed, because a malicious one could run
 * forever here.
 */
function clean(value: unknown, depth: number): unknown {
  if (depth > SCHEMA_DEPTH_MAX) return undefined
  if (typeof value === 'string') return visible(value)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).filter(([name, its]) => name !== 'pattern' || typeof its !== 'string')
  const parts = members.map(([name, its]) => [visible(name), clean(its, depth + 1)] as const)
  if (parts.some(([, its]) => its === undefined)) return undefined
  return Array.isArray(value) ? parts.map(([, its]) => its) : Object.fromEntries(parts)
}

/** A digest to compare definitions and to approve one. The order of members does not matter. */
export function definitionDigest({
  title,
  description,
  inputSchema,
  outputSchema,
  readOnly,
  repeatable,
}: ToolDefinition): string {
  const said = ordered({ title, description, inputSchema, outputSchema, readOnly, repeatable })
  return createHash('sha256').update(JSON.stringify(said)).digest('hex').slice(0, 32)
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, its]) => its !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, its]) => [name, ordered(its)]),
  )
}

interface DefinitionChange {
  readonly field: string
  readonly before: string | null
  readonly after: string | null
}

const CHANGES_MAX = 50

/** Each leaf in which two definitions differ. */
export function definitionChanges(before: ToolDefinition, after: ToolDefinition): DefinitionChange[] {
  const [old, now] = [leaves(before), leaves(after)]
  return [...new Set([...old.keys(), ...now.keys()])]
    .filter((field) => old.get(field) !== now.get(field))
    .slice(0, CHANGES_MAX)
    .map((field) => ({ field, before: old.get(field) ?? null, after: now.get(field) ?? null }))
}

const DEFINED = ['title', 'description', 'inputSchema', 'outputSchema', 'readOnly', 'repeatable'] as const

function leaves(of: ToolDefinition): Map<string, string> {
  const found = new Map<string, string>()
  const walk = (value: unknown, at: string) => {
    const inner = typeof value === 'object' && value !== null ? Object.entries(value) : []
    if (inner.length === 0) found.set(at, typeof value === 'string' ? value : JSON.stringify(value))
    for (const [name, its] of inner) walk(its, `${at}.${name}`)
  }
  for (const name of DEFINED) if (of[name] !== undefined) walk(of[name], name)
  return found
}

/** The last part of a tool's id: its name in the characters of ids, made unique. */
export function slugOf(tool: string, taken: ReadonlySet<string>): string {
  const base =
    tool
      .toLowerCase()
      .replaceAll(/[^a-z0-9_.-]+/g, '_')
      .replace(/^[^a-z0-9]+/, '')
      .slice(0, 50) || 'tool'
  let slug = base
  for (let next = 2; taken.has(slug); next++) slug = `${base}-${next}`
  return slug
}

/** Problems of tool servers that their schemas do not find. */
function toolServerProblems({
  toolServers,
  vendors,
  endpoints,
}: Pick<CatalogDocument, 'toolServers' | 'vendors'> & {
  endpoints: Readonly<Record<string, { routes: readonly { protocol: string }[]; cache?: unknown }>>
}) {
  const problems: { path: string[]; message: string }[] = []
  for (const [name, { vendor }] of Object.entries(toolServers))
    if (!Object.hasOwn(vendors, vendor))
      problems.push({ path: ['toolServers', name, 'vendor'], message: `there is no vendor "${vendor}"` })
  for (const [id, { routes, cache }] of Object.entries(endpoints)) {
    const [shelf, server = '', slug = ''] = id.split('/')
    const isOurs = routes.some(({ protocol }) => protocol === 'mcp')
    if (isOurs !== (shelf === 'mcp'))
      problems.push({
        path: ['endpoints', id, 'routes'],
        message: 'tools of servers are "mcp/<server>/<tool>", by the protocol "mcp"',
      })
    else if (isOurs && !(Object.hasOwn(toolServers, server) && Object.hasOwn(toolServers[server]?.tools ?? {}, slug)))
      problems.push({ path: ['endpoints', id], message: `the tool server "${server}" has no tool "${slug}"` })
    else if (isOurs && cache !== undefined && toolServers[server]?.auth === 'person')
      problems.push({
        path: ['endpoints', id, 'cache'],
        message: 'does not go with a server at which each person signs in',
      })
  }
  return problems
}

export const toolServerSection: CatalogSection = {
  name: 'toolServers',
  schema: toolServers,
  check: toolServerProblems,
  parts: ['*'],
}
