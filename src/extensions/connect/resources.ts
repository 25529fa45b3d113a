// Connecting a vendor: presets, a test before anything is stored, and credential, vendor and models in one transaction.

import * as z from 'zod'
import { vendorBridge } from '../../catalog/bridge.ts'
import { auth, type CatalogInput, catalogName, checkDocument, credentialName } from '../../catalog/document.ts'
import { belowCostNotes } from '../../catalog/margin.ts'
import { type Preset, type PresetFormat, readPresets } from '../../catalog/preset.ts'
import { readTextTraits } from '../../catalog/traits.ts'
import { addressesOf, belongsTo } from '../../catalog/vendor-edit.ts'
import { appliedView } from '../../catalog/views.ts'
import type { CoreParts } from '../../extension.ts'
import { parseCredits } from '../../kernel/credits.ts'
import { Fault } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import { KIND_NAMES, PROTOCOLS } from '../../meter/kind.ts'
import { dryRun, isDryRun, type Resource, requireRight, resource, secret, text } from '../../operator/resource.ts'
import { checkedAddress, mayAllGo, notAtHome } from '../../operator/resources/credential-moves.ts'
import type { Target } from '../../protocols/protocol.ts'
import type { ModelFacts } from '../../protocols/text/text.ts'
import { vendorTest } from '../../routing/views.ts'
import type { Credentials } from '../../upstream/credentials/credentials.ts'
import {
  type ChosenModel,
  type Connection,
  listPrice,
  sameProduct,
  suggestedUid,
  withConnection,
} from '../connection/connection.ts'
import { filledAddress, filledIn, findPreset, withLogin } from '../connection/filled-preset.ts'
import { testVendor } from '../probes/vendor-test.ts'
import { connectCheckView, presetView } from './views.ts'

export type ConnectDeps = Pick<
  CoreParts,
  'database' | 'audit' | 'catalog' | 'credentials' | 'upstream' | 'logins' | 'world'
>

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

export function connectResources({ database, audit, catalog, credentials, ...calling }: ConnectDeps): Resource[] {
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
        return testVendor(target, factsFor(target.model, place.preset), {
          ...calling,
          added: catalog.current.added,
          isForeign: false,
        })
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
