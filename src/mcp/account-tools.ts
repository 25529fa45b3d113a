// What a key can ask about itself: its models, its balance, the price of a call. Free of charge.
import type { Principal } from '../admission/api-key.ts'
import { type AccountDeps, quoteCall, readAccount } from '../api/account.ts'
import type { createModelLists } from '../api/models.ts'
import { KINDS } from '../catalog/kind.ts'
import { invalid } from '../kernel/fault.ts'
import { objectArgument } from './listing.ts'
import { markdownOf } from './markdown.ts'
import { pricingText } from './price.ts'
import { objectSchema, requiredText, type Tool, textArgument } from './tool.ts'

/** A model as /v1/models lists it. */
interface ListedModel {
  readonly uid: string
  readonly name: string
  readonly type: string
}

const FREE = { group: 'account', readOnly: true, openWorld: false, offered: () => true } as const

export function accountTools(
  deps: AccountDeps,
  lists: ReturnType<typeof createModelLists>,
  offered: (principal: Principal) => readonly Tool[],
): Tool[] {
  const { catalog } = deps

  function listModels(principal: Principal, type: string | undefined): ListedModel[] {
    const listed = JSON.parse(lists.list(principal, '', 'native')) as { data: ListedModel[] } // As written there.
    return listed.data.filter((model) => type === undefined || model.type === type)
  }

  return [
    {
      ...FREE,
      name: 'list_models',
      title: 'Models and prices',
      description:
        'Lists the models that this key may use, with their prices in credits. Use it before ask_model, generate_image or create_video to choose a model. Free.',
      input: objectSchema({ type: { type: 'string', enum: Object.keys(KINDS) } }),
      output: objectSchema({ models: { type: 'array' } }, ['models']),
      async run({ principal, args }) {
        const models = listModels(principal, textArgument(args, 'type'))
        const rows = models.map(({ uid, name, type }) => {
          const pricing = catalog.current.document.models[uid]?.pricing
          return { uid, name, type, price: pricing ? pricingText(pricing) : '' }
        })
        // Models are few, and a cut list would hide some.
        return { structured: { models }, text: rows.map((row) => Object.values(row).join(' · ')).join('\n') }
      },
    },
    {
      ...FREE,
      name: 'get_balance',
      title: 'Balance and limits',
      description: 'The credits that are left, what is held for running calls, and the limits of this key. Free.',
      input: objectSchema({}),
      output: { type: 'object' },
      async run({ principal }) {
        const account = await readAccount(principal, deps)
        return { structured: account, text: markdownOf(account) }
      },
    },
    {
      ...FREE,
      name: 'quote',
      title: 'Quote',
      description:
        'What a call of a paid tool would cost at most, and whether the balance covers it, without making it. Free. Example: {"tool":"website_visits","arguments":{"keys":"example.com"}}.',
      input: objectSchema({ tool: { type: 'string' }, arguments: { type: 'object' } }, ['tool']),
      output: { type: 'object' },
      async run({ principal, args }) {
        const name = requiredText(args, 'tool')
        const tool = offered(principal).find((one) => one.name === name)
        if (tool?.endpoint === undefined) throw invalid(`"${name.slice(0, 64)}" is not a paid tool.`, 'tool')
        const given = objectArgument(args, 'arguments')
        const body = Buffer.from(JSON.stringify(tool.asBody?.(given) ?? given))
        const quote = await quoteCall({ body, endpoint: tool.endpoint, principal }, deps)
        return { structured: quote, text: markdownOf(quote) }
      },
    },
  ]
}
