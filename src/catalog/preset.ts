// Presets of vendors: address, credential, formats, models with their facts and list prices, as data. A preset
// does not repeat the shipped catalog: properties of known models, and traits of their families, come from there.
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import * as z from 'zod'
import { KIND_NAMES, PROTOCOLS, type ProtocolName } from '../meter/kind.ts'
import { tier } from '../meter/price.ts'
import type { CatalogInput } from './document.ts'
import { textTraits } from './traits.ts'

export interface PresetFormat {
  readonly protocol: ProtocolName
  readonly serves?: readonly string[] | undefined
}

const format = z.union([
  z.enum(PROTOCOLS).transform((protocol): PresetFormat => ({ protocol })),
  z.strictObject({ protocol: z.enum(PROTOCOLS), serves: z.array(z.string()) }),
])
const count = z.number().int().positive()
const traits = z.record(z.string(), z.unknown())

const presetModel = z.strictObject({
  /** The same product in the shipped catalog, from which its properties are taken. */
  product: z.string().optional(),
  type: z.enum(KIND_NAMES).default('text'),
  capabilities: z.array(z.string()).default([]),
  limits: z
    .strictObject({ contextTokens: count.optional(), outputTokensMax: count.optional(), pagesMax: count.optional() })
    .default({}),
  traits: traits.optional(),
  /** The vendor's list price in US dollars, in the shape of a price. Absent: none was noted. */
  usd: z.array(tier).min(1).optional(),
})

/** Another way to log in than the vendor's entry has. */
const presetLogin = z.strictObject({
  title: z.string(),
  /** Describes the credential, or what is needed instead of one. */
  about: z.string(),
  auth: z.unknown().optional(),
  credential: z.string().optional(),
  variables: z.record(z.string().regex(/^[a-z]{1,20}$/), z.string()).default({}),
})

const preset = z.strictObject({
  title: z.string(),
  about: z.string().optional(),
  /** An entry of the catalog; `{name}` in its address is filled in from `variables`. */
  vendor: z.looseObject({ baseUrl: z.string(), credential: z.string().optional() }),
  /** Values that the operator must give besides the credential, with descriptions. */
  variables: z.record(z.string().regex(/^[a-z]{1,20}$/), z.string()).default({}),
  /** The name of the entry's own login, if there are others. */
  login: z.string().optional(),
  logins: z.record(z.string().regex(/^[a-z-]{1,30}$/), presetLogin).default({}),
  /** The family of the shipped catalog whose traits its text models have. */
  like: z.string().optional(),
  traits: traits.optional(),
  /** The tokenizer of its text models: see traits.ts. */
  tokenizer: textTraits.shape.tokenizer,
  formats: z.array(format).min(1),
  prices: z.strictObject({ noted: z.iso.date(), from: z.string() }).optional(),
  /** The vendor of the shipped catalog whose routes it replaces. */
  replacesVendor: z.string().optional(),
  models: z.record(z.string().min(1).max(200), presetModel).default({}),
})

export type PresetModel = ReturnType<typeof withFacts>

export interface Preset extends Omit<z.output<typeof preset>, 'traits' | 'models' | 'like'> {
  readonly name: string
  /** Of new models. */
  readonly family: string
  readonly traits: object
  readonly models: Readonly<Record<string, PresetModel>>
}

const FOLDER = join(import.meta.dirname, 'presets')

let known: Promise<readonly Preset[]> | undefined

/** All of them, by title; read once. */
export function readPresets(): Promise<readonly Preset[]> {
  known ??= read()
  return known
}

async function read(): Promise<readonly Preset[]> {
  const readJson = async (path: string): Promise<unknown> => JSON.parse(await readFile(path, 'utf8'))
  // The tests check it against its schema.
  const shipped = (await readJson(join(import.meta.dirname, 'default.json'))) as CatalogInput
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith('.json'))
  const presets = await Promise.all(
    files.map(async (file) => presetOf(basename(file, '.json'), await readJson(join(FOLDER, file)), shipped)),
  )
  return presets.sort((a, b) => a.title.localeCompare(b.title, 'en'))
}

function presetOf(name: string, content: unknown, shipped: CatalogInput): Preset {
  const { like, ...given } = preset.parse(content)
  return {
    ...given,
    name,
    family: like ?? name,
    traits: (like === undefined ? given.traits : shipped.families?.[like]?.traits) ?? {},
    models: Object.fromEntries(
      Object.entries(given.models).map(
        ([model, entry]) => [model, withFacts(entry, shipped, given.tokenizer)] as const,
      ),
    ),
  }
}

function withFacts(
  entry: z.output<typeof presetModel>,
  { models }: CatalogInput,
  tokenizer: z.output<typeof preset>['tokenizer'],
) {
  const shipped = entry.product === undefined ? undefined : models[entry.product]
  const { type, capabilities = [], limits = {}, traits: own = {} } = shipped ?? entry
  const counted = type === 'text' && tokenizer ? { tokenizer } : {}
  return { ...entry, type, capabilities, limits, traits: { ...counted, ...own } }
}
