// The data endpoints as tools: one tool for each data endpoint of the catalog, built entirely from its entry.
import { mayCall, mayUse, type Principal } from '../../../admission/api-key.ts'
import { type AccountDeps, quoteCall, readAccount } from '../../../api/account.ts'
import type { createModelLists } from '../../../api/models.ts'
import { type DataEndpointSpec, type EndpointSpec, isDataEndpoint, type JsonSchema } from '../../../catalog/endpoint.ts'
import type { Field } from '../../../catalog/field.ts'
import { sampleOf } from '../../../catalog/json-schema.ts'
import { type Catalog, findDataProduct, findProduct } from '../../../catalog/store.ts'
import { formatCredits } from '../../../kernel/credits.ts'
import { invalid } from '../../../kernel/fault.ts'
import { KIND_NAMES, rateWords, UNIT_NAMES } from '../../../meter/kind.ts'
import type { PriceTier, Pricing } from '../../../meter/price.ts'
import { objectArgument } from './listing.ts'
import { callEndpoint, type PaidDeps, type Request } from './paid-call.ts'
import {
  type Arguments,
  fieldSchemas,
  markdownOf,
  objectSchema,
  requiredText,
  type Tool,
  textArgument,
} from './tool.ts'

/** An answer that is no JSON is nothing that an agent could read. */
export function dataTools(endpoints: readonly EndpointSpec[], deps: PaidDeps): Tool[] {
  return endpoints
    .filter((spec) => isDataEndpoint(spec) && spec.gives === undefined)
    .map((spec) => dataTool(spec as DataEndpointSpec, deps)) // Only such are left.
}

function dataTool(spec: DataEndpointSpec, deps: PaidDeps): Tool {
  const name = toolName(spec)
  const required = Object.keys(spec.params).filter((param) => spec.params[param]?.required)
  return {
    name,
    ...(spec.tag === 'Products' ? { prefix: spec.restriction.replaceAll('-', '_') } : {}),
    group: spec.tag === 'Products' ? 'products' : spec.restriction === 'socialapi' ? 'social' : 'analytics',
    title: spec.title,
    description: [
      spec.description,
      ...(spec.tool?.advice ? [spec.tool.advice] : []),
      `Returns: ${spec.returns}`,
      `Example: ${exampleOf(spec, required)}.`,
    ].join(' '),
    price: (catalog) => priceText(catalog, spec.product),
    input: inputOf(spec, required),
    // The description already says what the answer contains; a full schema would double the size of the listing.
    output: { type: spec.answer?.type === 'array' ? 'array' : 'object' },
    readOnly: spec.method === 'GET' || spec.tag !== 'Products',
    openWorld: true,
    endpoint: spec.id,
    offered: (principal, catalog) =>
      mayCall(principal, spec) &&
      mayUse(principal, spec.restriction) &&
      findDataProduct(catalog, spec.product)?.enabled === true,
    async run(call) {
      const { value, charge } = await callEndpoint({ spec, tool: name }, asRequest(spec, call.args), call, deps)
      return { structured: value, text: markdownOf(value), charge, next: nextPage(spec, call.args, value) }
    },
  }
}

/** The parameters, and the body of an operation that takes one as `body`. */
function inputOf({ params, body }: DataEndpointSpec, required: readonly string[]): JsonSchema {
  if (!body) return objectSchema(fieldSchemas(params), required)
  const { $defs, examples: _, ...schema } = body
  return {
    ...objectSchema({ ...fieldSchemas(params), body: schema }, [...required, 'body']),
    ...($defs === undefined ? {} : { $defs }),
  }
}

/** `siteanalytics/websites/ranks/global` is `website_ranks_global`. */
function toolName({ id, tool }: DataEndpointSpec): string {
  if (tool?.name !== undefined) return tool.name
  return id
    .replace(/^siteanalytics\//, '')
    .replace(/^(\w+?)s\//, '$1/')
    .replaceAll(/[^a-z0-9]+/gi, '_')
}

function exampleOf({ params, body }: DataEndpointSpec, required: readonly string[]): string {
  const given = Object.fromEntries(required.map((name) => [name, params[name]?.example]))
  return JSON.stringify({ ...given, ...(body ? { body: sampleOf(body) } : {}) })
}

/** Turns the arguments into the query that a caller of the endpoint would send; the endpoint then validates it. */
function asRequest({ params, path, body: takes }: DataEndpointSpec, args: Arguments): Request {
  const inPath: Record<string, string> = {}
  const headers: Record<string, string> = {}
  const query = new URLSearchParams()
  const body = takes ? objectArgument(args, 'body') : undefined
  for (const [name, given] of Object.entries(args)) {
    if (given === null || given === undefined || (takes && name === 'body')) continue
    const value = plainValue(name, given, params[name])
    if (path.includes(`{${name}}`)) inPath[name] = value
    else if (params[name]?.in === 'header') headers[name.toLowerCase()] = value
    else query.append(name, value)
  }
  return {
    params: inPath,
    query: query.toString(),
    headers,
    ...(body ? { body: Buffer.from(JSON.stringify(body)) } : {}),
  }
}

/** Accepts JSON arrays for list parameters, because models often send them that way. */
function plainValue(name: string, value: unknown, field: Field | undefined): string {
  if (
    Array.isArray(value) &&
    (field?.kind === 'list' || field?.kind === 'values') &&
    value.every((item) => typeof item === 'string')
  )
    return value.join(',')
  if (Array.isArray(value) && field?.kind === 'json-array') return JSON.stringify(value)
  if (typeof value === 'object')
    throw invalid(`"${name.slice(0, 64)}" must be a text, a number or true or false.`, name)
  return String(value)
}

const TOTALS = ['TotalCount', 'TotalRecords', 'totalRecords'] as const

/**
 * The arguments to change for the next page; undefined on the last page, or if the answer has no paging information.
 */
function nextPage(spec: DataEndpointSpec, args: Arguments, value: unknown): Arguments | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const answer = value as Readonly<Record<string, unknown>> // Parsed JSON; an array has none of the members read here.
  const token = (answer.meta as { readonly next_token?: unknown } | null | undefined)?.next_token
  if ('pagination_token' in spec.params && typeof token === 'string') return { pagination_token: token }
  const page = spec.params.page ? 'page' : spec.params.Page ? 'Page' : undefined
  const total = TOTALS.map((name) => answer[name]).find((count) => typeof count === 'number')
  if (page === undefined || total === undefined) return undefined
  const rows = Object.keys(spec.params).find((name) => /^(rowsPerPage|pageSize)$/i.test(name))
  const given = (name: string | undefined) => Number((name && (args[name] ?? spec.params[name]?.default)) ?? Number.NaN)
  const at = Number.isNaN(given(page)) ? 1 : given(page)
  const size = Number.isNaN(given(rows)) ? spec.rowsMax : given(rows)
  return at * size < total ? { [page]: at + 1 } : undefined
}

// Free tools with which a key asks about itself: its models, its balance, the price of a call.

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
    const listed = JSON.parse(lists.list(principal, '', 'native')) as { data: ListedModel[] } // The JSON that lists.list writes.
    return listed.data.filter((model) => type === undefined || model.type === type)
  }

  return [
    {
      ...FREE,
      name: 'list_models',
      title: 'Models and prices',
      description:
        'Lists the models that this key may use, with their prices in credits. Use it before ask_model, generate_image or create_video to choose a model. Free.',
      input: objectSchema({ type: { type: 'string', enum: KIND_NAMES } }),
      output: objectSchema({ models: { type: 'array' } }, ['models']),
      async run({ principal, args }) {
        const models = listModels(principal, textArgument(args, 'type'))
        const rows = models.map(({ uid, name, type }) => {
          const pricing = catalog.current.document.models[uid]?.pricing
          return { uid, name, type, price: pricing ? pricingText(pricing) : '' }
        })
        // The list is not shortened: there are few models, and a cut list would hide some.
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
      async run(call) {
        const { principal, args } = call
        const name = requiredText(args, 'tool')
        const tool = offered(principal).find((one) => one.name === name)
        if (tool?.endpoint === undefined) throw invalid(`"${name.slice(0, 64)}" is not a paid tool.`, 'tool')
        const given = objectArgument(args, 'arguments')
        const body = Buffer.from(JSON.stringify(tool.asBody?.(given) ?? given))
        const own = await tool.own?.(call)
        const quote = await quoteCall({ body, endpoint: tool.endpoint, own, principal }, deps)
        return { structured: quote, text: markdownOf(quote) }
      },
    },
  ]
}

// Prices as text, for tool descriptions.

export function priceText(catalog: Catalog, product: string): string {
  const found = findProduct(catalog, product)
  return found ? `Costs ${pricingText(found.pricing)}.` : ''
}

/** The last tier is the default; each other tier names the condition under which it applies. */
function pricingText({ tiers }: Pricing): string {
  const last = tiers.at(-1)
  if (tiers.length === 1 && last) return tierText(last)
  const unit = UNIT_NAMES.find((name) => last?.[name] !== undefined)
  const rates = tiers.flatMap((tier) => (unit && tier[unit] !== undefined ? [tier[unit]] : []))
  const inOrder = rates.sort((a, b) => (a < b ? -1 : 1))
  return unit === undefined
    ? ''
    : `${formatCredits(inOrder[0] ?? 0n)} to ${formatCredits(inOrder.at(-1) ?? 0n)} credits ${rateWords(unit)}`
}

function tierText(tier: PriceTier): string {
  const parts = UNIT_NAMES.flatMap((unit) => {
    const rate = tier[unit]
    return rate === undefined || rate === 0n ? [] : [`${formatCredits(rate)} credits ${rateWords(unit)}`]
  })
  return parts.join(' and ') || 'nothing'
}
