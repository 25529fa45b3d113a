// The catalog, and a vendor that is added to it.

import * as z from 'zod'
import { vendorBridge } from '../../catalog/bridge.ts'
import {
  type ChosenModel,
  type Connection,
  listPrice,
  sameProduct,
  suggestedUid,
  withConnection,
} from '../../catalog/connect.ts'
import { auth, type CatalogInput, catalogName, checkDocument, credentialName } from '../../catalog/document.ts'
import { belowCostNotes } from '../../catalog/margin.ts'
import {
  filledAddress,
  filledIn,
  findPreset,
  type Preset,
  type PresetFormat,
  readPresets,
  withLogin,
} from '../../catalog/preset.ts'
import { isSandbox } from '../../catalog/simulated.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import { readTextTraits } from '../../catalog/traits.ts'
import { addressesOf, belongsTo, namedBy, originOf } from '../../catalog/vendor-edit.ts'
import { appliedView, connectCheckView, presetView } from '../../catalog/views.ts'
import type { Audit } from '../../database/audit.ts'
import type { Database } from '../../database/database.ts'
import { parseCredits } from '../../kernel/credits.ts'
import { Fault } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import { KIND_NAMES, PROTOCOLS } from '../../meter/kind.ts'
import type { Target } from '../../protocols/protocol.ts'
import type { ModelFacts } from '../../protocols/text/text.ts'
import { type VendorTest, vendorTest } from '../../routing/views.ts'
import { isMetadataHost } from '../../upstream/address.ts'
import type { Credentials } from '../../upstream/credentials/credentials.ts'
import { type Actor, dryRun, isDryRun, type Resource, requireRight, resource, secret, text } from '../resource.ts'

// Connecting a vendor: presets, a test before anything is stored, and credential, vendor and models in one transaction.

export interface ConnectDeps {
  readonly database: Database
  readonly audit: Audit
  readonly catalog: CatalogStore
  readonly credentials: Credentials
  /** Tests a vendor: lists its models and makes the smallest call. `isForeign`: with an account's BYOK key. */
  readonly test: (target: Target, call: ModelFacts | undefined, isForeign?: boolean) => Promise<VendorTest>
}

const factor = z
  .union([z.string(), z.number()])
  .refine((value) => (parseCredits(value) ?? 0n) > 0n, 'must be a positive decimal such as 1.2')
  .transform(String)

const price = z.record(z.string(), z.unknown())

const chosen = z.strictObject({
  model: z.string().min(1).max(200),
  uid: catalogName.optional(),
  type: z.enum(KIND_NAMES).optional(),
  cost: price.optional(),
  pricing: price.optional(),
})

const connectFields = {
  preset: text(100).optional(),
  /** Its name in the catalog; absent: the preset's. */
  vendor: catalogName.optional(),
  variables: z.record(z.string().max(20), text(200)).default({}),
  /** One of the preset's logins; absent: its default. */
  login: text(30).optional(),
  baseUrl: z.string().max(2000).optional(),
  auth: auth.optional(),
  formats: z.array(z.enum(PROTOCOLS)).min(1).optional(),
  credential: z.strictObject({ name: credentialName.optional(), value: secret.optional() }).default({}),
}

const connectBody = z.strictObject({
  ...connectFields,
  /** Absent: every model that the preset knows. */
  models: z.array(chosen).max(500).optional(),
  markup: factor.optional(),
  creditsPerDollar: factor.default('100'),
  /** Without it, nothing is applied if a model would be sold below cost. */
  belowCost: z.boolean().default(false),
  note: text(200, 0).default(''),
})
type ConnectBody = z.output<typeof connectBody>
type ConnectFields = Pick<ConnectBody, keyof typeof connectFields>

export function connectResources({ database, audit, catalog, credentials, test }: ConnectDeps): Resource[] {
  return [
    resource('GET /presets', 'vendors:read', {
      title: 'List vendor presets',
      answer: page(presetView),
      async run() {
        return { items: (await readPresets()).map((one) => show(one, catalog.current.input)), next: null }
      },
    }),
    resource('POST /connect/test', 'vendors:write', {
      title: 'Test a vendor before it is connected',
      body: z.strictObject({ ...connectFields, model: z.string().max(200).default('') }),
      answer: vendorTest,
      async run({ body, by }) {
        const place = await placeOf(body)
        const name = place.vendor.credential
        const value = body.credential.value ?? (name === undefined ? undefined : credentials.get(name))
        if (name !== undefined && value === undefined)
          throw new Fault('request_invalid', {
            message: `Paste a key, or set ${name} in the gateway's environment, of which only names with KEY or TOKEN are read.`,
          })
        if (name !== undefined && body.credential.value === undefined)
          for (const address of addressesOf(place.vendor)) await requireOwnOrigin(name, address, catalog.current.input)
        const [{ protocol }] = place.formats
        const target: Target = {
          protocol,
          baseUrl: place.vendor.baseUrl.replace(/(?<!\/)\/+$/, ''),
          secret: value,
          auth: place.vendor.auth,
          cloud: place.vendor.cloud,
          headers: place.vendor.headers ?? {},
          bridge: bridgeIn(place.vendor),
          model: body.model || cheapestOf(place.preset),
        }
        // The test sends a credential to an address that is not in the catalog, so it is audited.
        const detail = { baseUrl: target.baseUrl, credential: name ?? null }
        await database.transaction((tx) =>
          audit.write(tx, by, { action: 'vendor.test', object: place.vendorName, detail }),
        )
        return test(target, factsFor(target.model, place.preset))
      },
    }),
    resource('POST /connect', 'vendors:write', {
      title: 'Connect a vendor',
      query: z.strictObject({ dryRun }),
      body: connectBody,
      answer: z.union([appliedView.extend({ notes: z.array(z.string()) }), connectCheckView]),
      async run({ query, body, actor, by }) {
        if (body.credential.value !== undefined) requireRight(actor, 'vendor-credentials:write')
        const place = await placeOf(body)
        const connection: Connection = { ...place, ...choiceOf(body, place.preset) }
        const { credential: name } = place.vendor
        const { value } = body.credential
        // An existing vendor keeps credentials that this request does not name, and they would be sent to the new
        // address.
        const connected = async (current: CatalogInput) => {
          const made = withConnection(current, connection)
          const vendor = made.document.vendors[place.vendorName] ?? place.vendor
          await mayAllGo(vendor, { name, value }, { current, credentials })
          return made
        }
        const notes = credentialNotes(name, body, credentials)
        if (isDryRun(query)) {
          const made = await connected(catalog.current.input)
          const { problems, changes } = catalog.check(made.document)
          return {
            problems: [...made.problems, ...problems],
            changes,
            notes: [...notes, ...made.notes],
            belowCostNotes: lossesOf(made.document, place.vendorName),
            document: made.document,
          }
        }
        const all: string[] = []
        const applied = await catalog.amend(
          async (current, tx) => {
            const made = await connected(current)
            if (made.problems.length > 0)
              throw new Fault('request_invalid', { message: `Nothing was applied. ${made.problems.join(' ')}` })
            const losses = body.belowCost ? [] : lossesOf(made.document, place.vendorName)
            if (losses.length > 0)
              throw new Fault('request_invalid', {
                message: `Nothing was applied, because it would be sold below cost. Give "markup" or prices, or "belowCost": true. ${losses.join(' ')}`,
                param: 'markup',
              })
            all.push(...notes, ...made.notes)
            if (name !== undefined && value !== undefined && credentials.source(name) !== 'env')
              await credentials.storeWith(tx, name, value, by)
            return made.document
          },
          by,
          body.note || `connect ${place.vendorName}`,
        )
        await credentials.noticed()
        return { ...applied, notes: all }
      },
    }),
  ]
}

/**
 * An operator must not be able to send a secret that they do not know to an address of their choice: neither another
 * vendor's key nor an environment variable.
 */
async function requireOwnOrigin(name: string, address: string, current: CatalogInput): Promise<void> {
  if (!belongsTo(name, address, current, await readPresets())) throw notAtHome(name, address)
}

function notAtHome(name: string, address: string, param = 'credential.value'): Fault {
  return new Fault('request_invalid', {
    message: `Neither the catalog nor a preset uses ${name} at ${originOf(address)}: give its value again.`,
    param,
  })
}

interface Sent {
  readonly value: string | undefined
  readonly address: string
}
export type Values = Readonly<Record<string, string>>
interface Known {
  readonly current: CatalogInput
  readonly credentials: Credentials
}

/**
 * A credential may be sent to an address if the catalog or a preset uses it there, if it has no value yet, if the given
 * value replaces it, or if the given value is the stored one.
 */
export async function isFreeToGo(name: string, { value, address }: Sent, { current, credentials }: Known) {
  const source = credentials.source(name)
  const isSaid = value !== undefined && (source === 'stored' || credentials.get(name) === value)
  return source === 'none' || isSaid || belongsTo(name, address, current, await readPresets())
}

export async function mayGoTo(name: string, sent: Sent, known: Known): Promise<void> {
  if (!(await isFreeToGo(name, sent, known))) throw notAtHome(name, sent.address)
}

/**
 * Checks all credentials of the entry at all its addresses. A given value counts only for the credential of its name.
 */
export async function mayAllGo(
  vendor: CatalogInput['vendors'][string],
  given: { readonly name: string | undefined; readonly value: string | undefined },
  known: Known,
): Promise<void> {
  for (const { name } of namedBy(vendor))
    for (const address of addressesOf(vendor))
      await mayGoTo(name, { value: name === given.name ? given.value : undefined, address }, known)
}

/**
 * A document that uses credentials at new addresses needs the right to change credentials. Other problems of the
 * document are reported when it is applied.
 */
export async function checkMoves(
  actor: Actor,
  document: unknown,
  { values, catalog, ...known }: Known & { values: Values; catalog: CatalogStore },
) {
  if (Object.keys(values).length > 0) requireRight(actor, 'vendor-credentials:write')
  if (!checkDocument(document).ok) return
  const { vendors } = document as CatalogInput // It was just checked.
  for (const vendor of Object.values(vendors))
    for (const { name } of namedBy(vendor))
      for (const address of addressesOf(vendor)) {
        if (await isFreeToGo(name, { value: values[name], address }, known)) continue
        requireRight(actor, 'vendor-credentials:write')
        // An environment variable that nothing has used yet may be used at any address.
        if (await isInUse(name, known, catalog)) throw notAtHome(name, address, `credentials.${name}`)
      }
}

/** A credential that any catalog version has used stays bound to its addresses. */
async function isInUse(name: string, { credentials }: Known, catalog: CatalogStore): Promise<boolean> {
  const named = (await readPresets()).some(({ vendor }) => namedBy(vendor).some((one) => one.name === name))
  return credentials.source(name) === 'stored' || named || catalog.hasNamed(name)
}

/** What this vendor would serve below cost. An invalid document is rejected elsewhere. */
function lossesOf(document: CatalogInput, vendorName: string): string[] {
  const checked = checkDocument(document)
  return checked.ok ? belowCostNotes(checked.document, vendorName) : []
}

/** The preset's entry in the form of the catalog. */
function bridgeIn({ bridge }: CatalogInput['vendors'][string]) {
  return bridge === undefined ? undefined : vendorBridge.parse(bridge)
}

type PlaceFound = Pick<Connection, 'vendorName' | 'vendor' | 'preset'> & {
  readonly formats: readonly [PresetFormat, ...PresetFormat[]]
}

/** The vendor's address, login and formats: those of the request, otherwise of the preset. */
async function placeOf(body: ConnectFields): Promise<PlaceFound> {
  const found = body.preset === undefined ? undefined : await findPreset(body.preset)
  if (body.preset !== undefined && !found)
    throw new Fault('request_invalid', {
      message: `There is no preset "${body.preset}". There are: ${(await readPresets()).map(({ name }) => name).join(', ')}.`,
      param: 'preset',
    })
  const vendorName = body.vendor ?? found?.name
  if (vendorName === undefined)
    throw new Fault('request_invalid', { message: 'Give "vendor", its name in the catalog, or a "preset".' })
  const preset = found && withLogin(found, body.login)
  if (body.login !== undefined && !preset)
    throw new Fault('request_invalid', {
      message: `There is no login "${body.login}" for it. ${loginsOf(found)}`,
      param: 'login',
    })
  const formats = (body.formats?.map((protocol) => ({ protocol })) ?? preset?.formats ?? []).slice()
  const [first, ...rest] = formats
  if (!first)
    throw new Fault('request_invalid', { message: 'Give "formats": the API formats of the vendor.', param: 'formats' })
  const credential = body.credential.name ?? preset?.vendor.credential ?? madeName(vendorName, body)
  return {
    vendorName,
    preset,
    formats: [first, ...rest],
    vendor: {
      // The entry is checked with the whole catalog document.
      ...(preset?.vendor as CatalogInput['vendors'][string] | undefined),
      baseUrl: addressOf(body, preset),
      ...(credential === undefined ? {} : { credential }),
      ...authOf(body, preset),
    },
  }
}

/** As it was given, or that of the preset with its variables replaced. */
function authOf({ auth: given, variables }: ConnectFields, preset: Preset | undefined) {
  if (given !== undefined) return { auth: given }
  if (preset?.vendor.auth === undefined) return {}
  const filled = auth.safeParse(filledIn(preset.vendor.auth, variables))
  if (filled.success) return { auth: filled.data }
  const problems = filled.error.issues.flatMap((one) => (one.code === 'invalid_union' ? one.errors.flat() : [one]))
  const [wrong] = problems.filter(({ path }) => path.length > 1)
  const { path = [], message = 'is not right' } = wrong ?? {}
  throw new Fault('request_invalid', {
    message: `For the login, "${String(path.at(-1))}" ${message}.`,
    param: 'variables',
  })
}

function loginsOf(preset: Preset | undefined): string {
  const names = Object.keys(preset?.logins ?? {})
  return names.length === 0 ? 'Leave "login" out.' : `Leave it out, or give ${names.join(', ')}.`
}

/** A credential that is given without a name is stored under one made of the vendor's. */
function madeName(vendorName: string, { credential }: ConnectFields): string | undefined {
  if (credential.value === undefined) return undefined
  return `${vendorName
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, '_')
    .replace(/^[^A-Z]+/, '')}_API_KEY`.slice(-64)
}

function addressOf(body: ConnectFields, preset: Preset | undefined): string {
  if (body.baseUrl !== undefined) return checkedAddress(body.baseUrl)
  if (!preset) throw new Fault('request_invalid', { message: 'Give "baseUrl": where the vendor is.', param: 'baseUrl' })
  const filled = filledAddress(preset, body.variables)
  if (typeof filled === 'string') return checkedAddress(filled)
  const missing = filled.map((name) => `"${name}" (${preset.variables[name]})`).join(' and ')
  throw new Fault('request_invalid', { message: `${preset.title} needs ${missing}.`, param: 'variables' })
}

export function checkedAddress(given: string): string {
  const url = URL.parse(given)
  if (url && isMetadataHost(url.hostname))
    throw new Fault('request_invalid', {
      message: 'Link-local addresses (cloud metadata) cannot be vendors.',
      param: 'baseUrl',
    })
  const usable = url && /^https?:$/.test(url.protocol) && !url.username && !url.search && !url.hash
  if (!usable || isSandbox(given))
    throw new Fault('request_invalid', {
      message: `"${given.slice(0, 200)}" is not an http(s) address, or has a user, a query or a fragment.`,
      param: 'baseUrl',
    })
  return given.replace(/(?<!\/)\/+$/, '')
}

function choiceOf({ models, markup, creditsPerDollar }: ConnectBody, preset: Preset | undefined) {
  const all: ChosenModel[] = Object.keys(preset?.models ?? {}).map((model) => ({ model, optional: true }))
  // Prices are checked with the whole catalog document.
  return { models: (models as ChosenModel[] | undefined) ?? all, markup, creditsPerDollar }
}

/** Notes about a credential that is both in the environment and stored: which of them is used. */
function credentialNotes(name: string | undefined, { credential }: ConnectBody, credentials: Credentials): string[] {
  if (name === undefined) return []
  const source = credentials.source(name)
  if (source === 'env')
    return credential.value === undefined
      ? []
      : [`${name} is in the gateway's environment, which takes precedence: the given value is not stored.`]
  if (credential.value !== undefined) return [`${name} is stored encrypted.`]
  return source === 'stored' ? [] : [`${name} is neither stored nor in the gateway's environment: calls will fail.`]
}

function cheapestOf(preset: Preset | undefined): string {
  const text = Object.entries(preset?.models ?? {}).filter(([, { type }]) => type === 'text')
  const rate = (at: number) => text[at]?.[1].usd?.[0]?.output ?? 1_000_000_000_000n
  const order = text.map((_, at) => at).sort((a, b) => (rate(a) < rate(b) ? -1 : 1))
  return text[order[0] ?? 0]?.[0] ?? ''
}

function factsFor(model: string, preset: Preset | undefined): ModelFacts {
  const traits = readTextTraits({ ...preset?.traits, ...preset?.models[model]?.traits })
  return { uid: model || 'model', traits, limits: { outputTokensReserve: 1, outputTokensFloor: 1 } }
}

const variablesOf = (variables: Preset['variables']) =>
  Object.entries(variables).map(([name, about]) => ({ name, about }))

const PREVIEW_CREDITS_PER_DOLLAR = '100'

function show(preset: Preset, current: CatalogInput): z.input<typeof presetView> {
  return {
    name: preset.name,
    title: preset.title,
    about: preset.about ?? null,
    baseUrl: preset.vendor.baseUrl,
    credential: preset.vendor.credential ?? null,
    variables: variablesOf(preset.variables),
    login: preset.login ?? null,
    logins: Object.entries(preset.logins).map(([name, { title, about, credential, variables }]) => ({
      name,
      title,
      about,
      credential: credential ?? null,
      variables: variablesOf(variables),
    })),
    formats: preset.formats.map(({ protocol }) => protocol),
    prices: preset.prices ?? null,
    replacesVendor: preset.replacesVendor ?? null,
    models: Object.entries(preset.models).map(([model, facts]) => ({
      model,
      uid: suggestedUid(model),
      alias: sameProduct(current, facts) ? (facts.product ?? null) : null,
      type: facts.type,
      capabilities: [...facts.capabilities],
      contextTokens: 'contextTokens' in facts.limits ? Number(facts.limits.contextTokens) : null,
      cost: listPrice(facts, PREVIEW_CREDITS_PER_DOLLAR) ?? null,
    })),
  }
}
