// Tool groups (namespaces), which only the Responses format has. Other formats have one flat list of names: a grouped tool is sent under a
// combined name, and its calls are returned under the caller's two names.
import { createHash } from 'node:crypto'
import { type Json, objects, text } from '../../check.ts'

/** The longest tool name that every format accepts. */
const NAME_CHARS_MAX = 64
const DIGEST_CHARS = 8

interface Grouped {
  readonly name: string
  readonly namespace?: string
}

export class Namespaces {
  /** All tools; grouped ones have their flat names. */
  readonly tools: readonly { readonly tool: Json; readonly name: string; readonly at: string }[]
  private readonly byFlat = new Map<string, Grouped>()
  private readonly taken = new Set<string>()

  constructor(given: unknown) {
    const tools = objects(given)
    for (const { type, name } of tools) if (type !== 'namespace' && typeof name === 'string') this.taken.add(name)
    this.tools = tools.flatMap((tool, i) => {
      const at = `tools[${i}]`
      if (tool.type !== 'namespace') return [{ tool, name: text(tool.name) ?? '', at }]
      const group = text(tool.name) ?? ''
      return objects(tool.tools).map((inner, j) => ({
        tool: inner,
        name: this.flat(text(inner.name) ?? '', group),
        at: `${at}.tools[${j}]`,
      }))
    })
  }

  /** The flat name of a grouped tool; the same in every turn of a conversation. */
  flat(name: string, namespace: string | undefined): string {
    if (namespace === undefined) return name
    const joined = `${namespace}${namespace.endsWith('__') ? '' : '__'}${name}`.replaceAll(/[^\w-]/g, '_')
    const known = this.byFlat.get(joined)
    const isFree = known ? known.name === name && known.namespace === namespace : !this.taken.has(joined)
    const flat = joined.length <= NAME_CHARS_MAX && isFree ? joined : withDigest(joined, name, namespace)
    this.byFlat.set(flat, { name, namespace })
    return flat
  }

  /** The caller's name for a tool that a vendor has called. */
  grouped(flat: string): Grouped {
    return this.byFlat.get(flat) ?? { name: flat }
  }

  /** The names of a tool choice, which may be a whole group. */
  chosen(choice: Json): string[] {
    const name = text(choice.name) ?? ''
    if (choice.type !== 'namespace') return [this.flat(name, text(choice.namespace))]
    return [...this.byFlat].filter(([, { namespace }]) => namespace === name).map(([flat]) => flat)
  }
}

function withDigest(joined: string, name: string, namespace: string): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([namespace, name]))
    .digest('hex')
    .slice(0, DIGEST_CHARS)
  return `${joined.slice(0, NAME_CHARS_MAX - DIGEST_CHARS - 1)}_${digest}`
}
