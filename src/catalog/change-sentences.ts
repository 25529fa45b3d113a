// Describes the differences between two catalogs: in sentences for the audit log, the command line and programs; for
// the console, which bundles this file, prices as rows of a table. A document may be invalid, so the code assumes
// nothing about its form.
import { formatCredits, parseCredits } from '../kernel/credits.ts'
import { rateWords, UNIT_NAMES, type Unit } from '../meter/kind.ts'
import { groupedCredits } from '../meter/price-words.ts'

export type Tree = Readonly<Record<string, unknown>>

const SENTENCES_MAX = 500
const VALUE_CHARS_MAX = 80

/** What has sentences of its own, besides sections of extensions. */
const DESCRIBED = ['vendors', 'models', 'endpoints', 'allClientFormats']

/** A rate before and after, beside what it costs. Credits; undefined: none, or not known. */
export interface RateChange {
  /** The tier's condition; '' if there is only one tier. */
  readonly tier: string
  readonly unit: Unit
  readonly was: bigint | undefined
  readonly now: bigint | undefined
  readonly cost: bigint | undefined
  readonly wasCost: bigint | undefined
  /** The tier itself is not new. */
  readonly isKept: boolean
}

/** What changes in the prices of one product, or in what one vendor takes for it. */
export interface PriceChange {
  readonly subject: string
  readonly rates: readonly RateChange[]
  /** Besides the rates: "It is new, served by acme." */
  readonly more: string
  /** All of it. */
  readonly sentence: string
}

export type Change = string | PriceChange

/** What has changed in a section. */
export type Review = (before: unknown, after: unknown) => Change[]
/** By the section's name. */
export type Reviews = Readonly<Record<string, Review>>

/**
 * "acme-large-1: 75 credits per million input tokens, cost 60, margin 20 %." One sentence for each thing that differs,
 * none for equal documents.
 */
export function describeChanges(before: unknown, after: unknown, reviews: Reviews = {}): string[] {
  const sentences = listChanges(before, after, reviews).map((one) => (typeof one === 'string' ? one : one.sentence))
  return firstSentences(sentences, SENTENCES_MAX)
}

/** One for each thing that differs, none for equal documents. */
export function listChanges(before: unknown, after: unknown, reviews: Reviews = {}): Change[] {
  if (isSame(before, after)) return []
  if (!isTree(before) || !isTree(after))
    return [before === undefined ? 'This is the first catalog.' : 'The whole document is replaced.']
  const renamed = renamedVendors(treeOf(before.vendors), treeOf(after.vendors))
  const old = renamed.size === 0 ? before : withRenamed(before, renamed)
  const { allClientFormats } = after
  const described = [...DESCRIBED, ...Object.keys(reviews)]
  const changes = [
    ...[...renamed].map(([from, to]) => `Vendor ${from} is renamed ${to}.`),
    ...each(old.vendors, after.vendors, vendorSentences),
    ...each(old.models, after.models, productSentences),
    ...each(old.endpoints, after.endpoints, productSentences),
    ...formatSentences(old.allClientFormats, allClientFormats),
    ...Object.entries(reviews).flatMap(([name, review]) => review(member(old, name), member(after, name))),
    ...leafSentences('Catalog', omit(old, described), omit(after, described)),
  ]
  // "75" and 75 are equal, and the order of members does not matter.
  if (changes.length === 0 && !isSame(sorted(before), sorted(after)))
    return ['The document is written in another way and says the same.']
  return changes
}

/** The last one says how many were left out. */
export function firstSentences(sentences: readonly string[], most: number): string[] {
  const left = sentences.length - most
  return left > 0 ? [...sentences.slice(0, most), `… and ${left} more`] : [...sentences]
}

export type Describe = (name: string, before: Tree | undefined, after: Tree | undefined) => Change[]

/** Each member of either that differs. */
export function each(before: unknown, after: unknown, describe: Describe): Change[] {
  const [old, now] = [treeOf(before), treeOf(after)]
  const names = [...new Set([...Object.keys(old), ...Object.keys(now)])]
  return names.flatMap((name) => {
    const [was, is] = [member(old, name), member(now, name)]
    if (isSame(was, is)) return []
    return describe(name, was === undefined ? undefined : treeOf(was), is === undefined ? undefined : treeOf(is))
  })
}

// Vendors.

function vendorSentences(name: string, before: Tree | undefined, after: Tree | undefined): string[] {
  if (!after) return [`Vendor ${name} is removed.`]
  if (before) return leafSentences(`Vendor ${name}`, before, after)
  const credentials = [after.credential, ...listOf(after.credentials).map(({ name }) => name)].filter(
    (one) => typeof one === 'string',
  )
  const by = credentials.length > 0 ? `, with the credential ${credentials.join(' and ')}` : ', without a credential'
  return [`Vendor ${name} is added at ${String(after.baseUrl)}${by}.`]
}

/** Vendors that were only renamed. */
function renamedVendors(before: Tree, after: Tree): ReadonlyMap<string, string> {
  const added = Object.keys(after).filter((name) => member(before, name) === undefined)
  const gone = Object.keys(before).filter((name) => member(after, name) === undefined)
  const pairs = gone.flatMap((name): [string, string][] => {
    const same = added.filter((other) => isSame(after[other], before[name]))
    return same.length === 1 ? [[name, same[0] ?? '']] : []
  })
  const isClear = new Set(pairs.map(([, to]) => to)).size === pairs.length
  return new Map(isClear ? pairs : [])
}

function withRenamed(document: Tree, renamed: ReadonlyMap<string, string>): Tree {
  const nameOf = (name: unknown) => renamed.get(String(name)) ?? name
  const moved = (shelf: unknown) =>
    mapMembers(treeOf(shelf), (product) => ({
      ...product,
      ...(Array.isArray(product.routes)
        ? { routes: listOf(product.routes).map((route) => ({ ...route, vendor: nameOf(route.vendor) })) }
        : {}),
    }))
  const vendors = Object.entries(treeOf(document.vendors)).map(([name, vendor]) => [nameOf(name), vendor])
  return {
    ...document,
    vendors: Object.fromEntries(vendors),
    models: moved(document.models),
    endpoints: moved(document.endpoints),
  }
}

// Models and data endpoints.

function productSentences(uid: string, before: Tree | undefined, after: Tree | undefined): Change[] {
  if (!after) return [`${uid} is no longer offered.`]
  if (!before) {
    const vendors = [...new Set(listOf(after.routes).map(({ vendor }) => String(vendor)))]
    return [priceChange(uid, undefined, after, `It is new, served by ${vendors.join(' and ')}.`)]
  }
  const price = priceSentence(uid, before, after)
  const apart = ['enabled', 'pricing', 'routes']
  const [was, is] = [treeOf(before.pricing), treeOf(after.pricing)]
  return [
    ...(isOn(before) === isOn(after) ? [] : [`${uid} is switched ${isOn(after) ? 'on' : 'off'}.`]),
    ...price,
    ...routeSentences(uid, before, after, price.length > 0 ? saidCost(before, after) : undefined),
    ...leafSentences(uid, omit(before, apart), omit(after, apart)),
    ...leafSentences(`${uid}, price`, omit(was, ['tiers']), omit(is, ['tiers'])),
  ]
}

const isOn = ({ enabled }: Tree) => enabled !== false

/** For products whose price or cost has changed. */
function priceSentence(uid: string, before: Tree, after: Tree): PriceChange[] {
  const of = (product: Tree) => [tiersOf(product.pricing), costsOf(product)]
  if (isSame(of(before), of(after))) return []
  const change = priceChange(uid, before, after)
  return change.rates.length === 0 ? [] : [change]
}

function priceChange(subject: string, before: Tree | undefined, after: Tree, more = ''): PriceChange {
  const sentence = `${subject}: ${ratesInWords(before, after)}.${more && ` ${more}`}`
  return { subject, rates: rateChanges(before, after), more, sentence }
}

/** The rates that differ, tier by tier; of a price that is new, all. */
export function rateChanges(before: Tree | undefined, after: Tree): RateChange[] {
  const [tiers, old] = [tiersOf(after.pricing), tiersOf(before?.pricing)]
  const [costs, oldCosts] = [costsOf(after), before ? costsOf(before) : []]
  const isAt = (tier: Tree) => (one: Tree) => isSame(conditionsOf(one), conditionsOf(tier))
  const rowsOf = (is: number, was: number) => {
    const [tier, wasTier] = [tiers[is], old[was]]
    const all = tier ? tiers : old
    const name = conditionInWords(tier ?? wasTier ?? {}) || (all.length > 1 ? 'else' : '')
    return UNIT_NAMES.flatMap((unit): RateChange[] => {
      const [now, wasRate] = [rateOf(tier, unit), rateOf(wasTier, unit)]
      const [cost, wasCost] = [rateOf(costs[is], unit), rateOf(oldCosts[was], unit)]
      if (now === wasRate && (now === undefined || (wasTier && cost === wasCost))) return []
      return [{ tier: name, unit, was: wasRate, now, cost, wasCost, isKept: wasTier !== undefined }]
    })
  }
  const gone = old.flatMap((tier, at) => (tiers.some(isAt(tier)) ? [] : [at]))
  return [
    ...tiers.flatMap((tier, at) => rowsOf(at, old.findIndex(isAt(tier)))),
    ...gone.flatMap((at) => rowsOf(-1, at)),
  ]
}

/** The changed rates of a price; if its tiers differ, both prices. */
function ratesInWords(before: Tree | undefined, after: Tree): string {
  const conditions = ({ pricing }: Tree) => tiersOf(pricing).map(conditionsOf)
  if (before && !isSame(conditions(before), conditions(after))) {
    const was = ratesInWords(undefined, { pricing: before.pricing })
    return `${ratesInWords(undefined, after)} (until now ${was || 'no price'})`
  }
  const tiers = Map.groupBy(rateChanges(before, after), ({ tier }) => tier)
  return [...tiers].map(([tier, rates]) => `${tier && `${tier}: `}${rates.map(rateInWords).join('; ')}`).join('; ')
}

function rateInWords({ unit, was, now, cost, wasCost, isKept }: RateChange): string {
  if (now === undefined) return `no rate ${rateWords(unit)} any more`
  const first = was === undefined ? ' (new)' : ` instead of ${groupedCredits(was)}`
  const price = `${groupedCredits(now)} credits ${rateWords(unit)}${isKept && now !== was ? first : ''}`
  if (cost === undefined) return price
  const changed = wasCost === undefined || wasCost === cost ? '' : ` instead of ${groupedCredits(wasCost)}`
  const margin = marginPercent(now, cost)
  return `${price}, cost ${groupedCredits(cost)}${changed}${margin === undefined ? '' : `, margin ${margin} %`}`
}

/** Of the price, to one decimal. */
export function marginPercent(price: bigint, cost: bigint): number | undefined {
  return price === 0n ? undefined : Math.round(Number(((price - cost) * 100_000n) / price) / 100) / 10
}

const tiersOf = (pricing: unknown): Tree[] => listOf(treeOf(pricing).tiers)
const conditionsOf = ({ upTo, when }: Tree) => ({ upTo, when })
const rateOf = (tier: Tree | undefined, unit: Unit) =>
  tier?.[unit] === undefined ? undefined : parseCredits(tier[unit])

function conditionInWords({ upTo, when }: Tree): string {
  const parts = Object.entries(treeOf(when)).map(([name, value]) => `${name} ${String(value)}`)
  if (typeof upTo === 'number') parts.push(`up to ${upTo.toLocaleString('en')} input tokens`)
  return parts.join(', ')
}

/** The first routes (lowest order) whose cost is known. */
function askedFirst(product: Tree): Tree[] {
  const routes = listOf(product.routes).filter(isOn)
  const first = Math.min(...routes.map(orderOf))
  return routes.filter((route) => orderOf(route) === first && isTree(route.cost))
}

/** The route whose cost is in the sentence of the price: the most expensive of the first routes. */
function saidCost(before: Tree, after: Tree): Tree | undefined {
  const [[now, ...others], old] = [askedFirst(after), askedFirst(before)]
  if (!now || others.length > 0 || old.length > 1) return undefined
  const isOne = old.every((route) => isSame(placeOf(route), placeOf(now)))
  const isSayable = [...old, now].every(({ cost }) => tiersOf(cost).every((tier) => hasPrice(tier, cost, after)))
  return isOne && isSayable ? now : undefined
}

/** Whether each rate of a cost has a rate of the same unit in the price. */
function hasPrice(tier: Tree, cost: unknown, { pricing }: Tree): boolean {
  const isAlone = tiersOf(cost).length === 1
  const beside = tiersOf(pricing).filter((one) => isAlone || isSame(conditionsOf(one), conditionsOf(tier)))
  return UNIT_NAMES.every((unit) => tier[unit] === undefined || beside.some((one) => one[unit] !== undefined))
}

/** The highest cost of the first routes, tier by tier. Empty if it is not known. */
export function costsOf(product: Tree): Tree[] {
  const asked = askedFirst(product)
  return tiersOf(product.pricing).map((tier) => {
    const costs = asked.flatMap(({ cost }) => {
      const tiers = tiersOf(cost)
      const same = tiers.find((one) => isSame(conditionsOf(one), conditionsOf(tier)))
      if (same) return [same]
      return tiers.length === 1 ? tiers : []
    })
    return Object.fromEntries(
      UNIT_NAMES.flatMap((unit) => {
        const rates = costs.flatMap((one) => rateOf(one, unit) ?? [])
        const most = rates.reduce<bigint | undefined>((a, b) => (a === undefined || b > a ? b : a), undefined)
        return most === undefined ? [] : [[unit, formatCredits(most)]]
      }),
    )
  })
}

const orderOf = ({ order }: Tree) => (typeof order === 'number' ? order : 0)

// Routes.

function routeSentences(uid: string, before: Tree, after: Tree, said: Tree | undefined): Change[] {
  const [old, now] = [keyed(before), keyed(after)]
  const added = [...now].flatMap(([key, route]) => (old.has(key) ? [] : [route]))
  const gone = [...old].flatMap(([key, route]) => (now.has(key) ? [] : [route]))
  const kept = [...now].flatMap(([key, route]) => {
    const was = old.get(key)
    if (!was) return []
    const where = `${uid} at ${String(route.vendor)}`
    const isCostKept = isTree(was.cost) && isTree(route.cost)
    const isSaid = said !== undefined && isSame(route, said)
    const apart = ['enabled', ...(isSaid || isCostKept ? ['cost'] : [])]
    return [
      ...(isOn(was) === isOn(route) ? [] : [`${where}: the route is switched ${isOn(route) ? 'on' : 'off'}.`]),
      ...(isCostKept ? costSentences(`${where}, cost`, treeOf(was.cost), treeOf(route.cost), isSaid) : []),
      ...leafSentences(where, omit(was, apart), omit(route, apart)),
    ]
  })
  const moved = added.length + gone.length + kept.length === 0 && !isSame([...old.keys()], [...now.keys()])
  return [
    ...added.map(
      (route) => `${uid}: ${routeInWords(route)} serves it${orderOf(route) > 0 ? ' when others fail' : ''}.`,
    ),
    ...gone.map((route) => `${uid}: ${routeInWords(route)} no longer serves it.`),
    ...kept,
    ...(moved ? [`${uid}: its routes change places.`] : []),
  ]
}

function costSentences(subject: string, before: Tree, after: Tree, isSaid: boolean): Change[] {
  return [
    ...(isSaid ? [] : priceSentence(subject, { pricing: before }, { pricing: after })),
    ...leafSentences(subject, omit(before, ['tiers']), omit(after, ['tiers'])),
  ]
}

function routeInWords({ vendor, protocol, model }: Tree): string {
  return `${String(vendor)} (${String(protocol)}${model === undefined ? '' : `, as ${String(model)}`})`
}

const placeOf = ({ vendor, protocol, model, serves }: Tree) => [vendor, protocol, model, serves]

/** A route is identified by vendor, format and model; equal routes by their position. */
function keyed({ routes }: Tree): Map<string, Tree> {
  const all = new Map<string, Tree>()
  for (const route of listOf(routes)) {
    let key = JSON.stringify(placeOf(route))
    while (all.has(key)) key += '+'
    all.set(key, route)
  }
  return all
}

function formatSentences(before: unknown, after: unknown): string[] {
  if ((before === true) === (after === true)) return []
  return [
    after === true
      ? 'Every text model is offered in every client format.'
      : 'Text models are offered in the client formats that their entries list.',
  ]
}

// Everything else: by the name of the field, with what it was and what it becomes.

const FIELD_WORDS: Readonly<Record<string, string>> = {
  baseUrl: 'base URL',
  batchFactor: 'batch multiplier',
  clientFormats: 'client formats',
  concurrencyMax: 'calls at once',
  pendingMax: 'waiting calls',
  onAbort: 'when a caller leaves',
  passesUnknown: 'unknown members are sent',
  byokFee: 'BYOK fee',
  'timeouts.connectMs': 'connect timeout (ms)',
  'timeouts.firstByteMs': 'first-byte timeout (ms)',
  'timeouts.idleMs': 'idle timeout (ms)',
  'timeouts.totalMs': 'total timeout (ms)',
  'probe.everySeconds': 'seconds between probes',
  'timeouts.drainMs': 'reading on after a caller has left (ms)',
  'limits.contextTokens': 'context tokens',
  'limits.outputTokensMax': 'most output tokens',
  'routing.policy': 'routing policy',
  'routing.sticky': 'sticky routing',
}

export function leafSentences(subject: string, before: Tree, after: Tree, path = ''): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names.flatMap((name) => {
    const [was, is] = [member(before, name), member(after, name)]
    if (isSame(was, is)) return []
    const at = path ? `${path}.${name}` : name
    if (isTree(was) && isTree(is)) return leafSentences(subject, was, is, at)
    const field = FIELD_WORDS[at] ?? at
    if (was === undefined)
      return isTree(is) && FIELD_WORDS[at] === undefined
        ? leafSentences(subject, {}, is, at)
        : [`${subject}: ${field} becomes ${show(is)}.`]
    if (is === undefined) return [`${subject}: ${field} ${show(was)} is taken out.`]
    return [`${subject}: ${field} changes from ${show(was)} to ${show(is)}.`]
  })
}

function show(value: unknown): string {
  const isList = Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string')
  const text = isList ? value.join(', ') : JSON.stringify(value)
  return text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX - 1)}…` : text
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isTree(value)) return value
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(members.map(([name, one]) => [name, sorted(one)]))
}

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)
export const treeOf = (value: unknown): Tree => (isTree(value) ? value : {})
export const listOf = (value: unknown): Tree[] => (Array.isArray(value) ? value.map(treeOf) : [])
export const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)
/** Reads own members only, because names in a document may be those of inherited properties. */
const member = (tree: Tree, name: string) => (Object.hasOwn(tree, name) ? tree[name] : undefined)
const mapMembers = (tree: Tree, change: (value: Tree) => unknown): Tree =>
  Object.fromEntries(Object.entries(tree).map(([name, value]) => [name, isTree(value) ? change(value) : value]))
export const omit = (tree: Tree, names: readonly string[]): Tree =>
  Object.fromEntries(Object.entries(tree).filter(([name]) => !names.includes(name)))
