// What a client may read without a call: the models and the price list of its key.
import type { UriTemplate } from '@modelcontextprotocol/server'
import type { createModelLists } from '../api/models.ts'
import type { Catalog } from '../catalog/store.ts'
import type { Tool, ToolCaller } from './tool.ts'

export interface Resource {
  /** With `template`, the template itself. */
  readonly uri: string
  readonly template?: UriTemplate
  readonly name: string
  readonly title: string
  readonly description: string
  readonly mimeType: string
  readonly read: (guest: ToolCaller, uri: string) => Promise<{ text: string } | { blob: string }>
}

interface ResourceDeps {
  readonly current: () => Catalog
  readonly offered: (guest: ToolCaller) => readonly Tool[]
  readonly models: ReturnType<typeof createModelLists>
}

export function ownResources({ current, offered, models }: ResourceDeps): Resource[] {
  return [
    {
      uri: 'tollgate://models',
      name: 'models',
      title: 'Models',
      description: 'The models of this key with their prices, as GET /v1/models lists them.',
      mimeType: 'application/json',
      read: async ({ principal, newRequestId }) => ({ text: models.list(principal, newRequestId(), 'native') }),
    },
    {
      uri: 'tollgate://tools',
      name: 'price list',
      title: 'Tools and prices',
      description: 'The tools of this key, a line each, with what they cost.',
      mimeType: 'text/markdown',
      read: async (guest) => ({
        text: offered(guest)
          .map((tool) => `- \`${tool.name}\`: ${tool.title}. ${tool.price?.(current()) || 'Free.'}`)
          .join('\n'),
      }),
    },
  ]
}
