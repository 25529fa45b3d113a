// Connects a vendor with one command: credential, real test, models with prices, and a preview of the changes before
// they are applied.
import { hasRealVendor, simulatedOffers } from '../../catalog/simulated.ts'
import type { Applied, CurrentView } from '../../catalog/views.ts'
import { offerSimulated, pairs, priced } from '../../cli/catalog.ts'
import { CliError, type Command, flag, type Invocation, type Told, takes, text } from '../../cli/command.ts'
import { wordsLike } from '../../cli/derived.ts'
import { nearest } from '../../kernel/nearest.ts'
import type { Page } from '../../kernel/view.ts'
import type { VendorTest } from '../../routing/views.ts'
import type { ConnectCheckView, PresetView } from './views.ts'

const OPTIONS = {
  login: takes('name', 'How to log in, if the preset has several ways: role, workload, entra, metadata and others.'),
  'key-env': takes(
    'NAME',
    'The name of the credential. Its value comes from the gateway’s environment, from a stored credential, or from this shell, and is then stored.',
  ),
  'key-stdin': flag('Reads the credential from standard input, to be stored encrypted.'),
  set: takes('name=value,…', 'A part of the preset’s address, such as resource=my-azure.'),
  url: takes('address', 'The address, if it is not the preset’s or there is no preset.'),
  format: takes('name,…', 'The format of a vendor without a preset; openai-chat by default.'),
  vendor: takes('name', 'Its name in the catalog; by default the preset’s.'),
  models: takes(
    'name[=uid],…',
    'The models to offer, and their uids; "all": all that it lists. By default those of the preset.',
  ),
  markup: takes('factor', 'Price = cost × this. By default existing prices stay.'),
  cost: takes('unit=credits,…', 'Cost of models without a list price: input=100,output=300.'),
  price: takes('unit=credits,…', 'Price of the models, instead of cost × markup.'),
  'credits-per-dollar': takes('number', 'For list prices; 100 by default.'),
  'below-cost': flag('Accepts prices below the vendor’s cost without asking.'),
  untested: flag('Does not call the vendor first.'),
  'dry-run': flag('Tests the vendor and shows what would change; applies nothing.'),
} as const satisfies Command['options']

export const CONNECT_COMMAND: Command = {
  name: 'connect',
  summary: 'Connects a vendor: credential, real test, models and prices, in one go.',
  args: ['name'],
  options: OPTIONS,
  about:
    'The name is that of a preset (see: tollgate presets), or your own together with --url. Nothing is applied when the test fails.',
  run: connect,
}

async function connect(call: Invocation): Promise<Told> {
  const place = await placeOf(call)
  const test = call.values.untested
    ? undefined
    : await call.api.call<VendorTest>('POST', '/connect/test', { ...place, ...probed(call) })
  const told = test ? wordsLike('vendors test', test) : ''
  if (test && !test.ok) return { answer: { test, applied: null }, words: `${told}\nNothing was applied.`, failed: true }
  const body = { ...place, ...choice(call, test), ...given(call, 'markup', 'markup') }
  const check = await call.api.call<ConnectCheckView>('POST', '/connect?dryRun=1', body)
  const { problems, changes, notes, belowCostNotes } = check
  const preview = [told, indented(changes), ...[...notes, ...belowCostNotes].map((note) => `Note: ${note}`)]
    .filter(Boolean)
    .join('\n')
  if (problems.length > 0)
    return {
      answer: { test, problems, changes, notes },
      words: `${preview}\nNothing was applied:\n${indented(problems)}`,
      failed: true,
    }
  if (call.values['dry-run'])
    return {
      answer: { test, problems, changes, notes, belowCostNotes },
      words: `${preview}\n${changes.length} changes. Nothing was applied.`,
    }
  const belowCost =
    belowCostNotes.length > 0 && (call.values['below-cost'] === true || (await sellsBelowCost(call, belowCostNotes)))
  if (belowCostNotes.length > 0 && !belowCost)
    return { answer: { test, belowCostNotes, applied: null }, words: refusal(belowCostNotes), failed: true }
  const applied = await call.api.call<Applied>('POST', '/connect', { ...body, belowCost })
  const { document } = await call.api.call<CurrentView>('GET', '/catalog')
  const after = [await aboutSimulated(call, document), nextCommand(document, place)].filter(Boolean)
  const words = `${preview}\nVersion ${applied.version} is in force.\n\n${after.join('\n\n')}`
  return { answer: { test, ...applied, notes }, words }
}

/** Asks whether simulated models stay on offer beside real ones; without a terminal it says how to take them off. */
async function aboutSimulated(call: Invocation, document: CurrentView['document']): Promise<string> {
  const offers = hasRealVendor(document) ? simulatedOffers(document) : []
  if (offers.length === 0) return ''
  const told = `${offers.length} models and data endpoints are still simulated, such as ${offers[0]}: their answers are made up, and charged like all others.`
  if (!call.ask) return `Note: ${told} To take them off: tollgate catalog simulated off`
  call.note(`${told}\n`)
  if (!/^y(es)?$/i.test((await call.ask('Take them off? [y/N] ')).trim()))
    return 'They stay on offer. To take them off later: tollgate catalog simulated off'
  const { version } = await offerSimulated(call, false)
  return `They are no longer offered from version ${version} on. To offer them again: tollgate catalog simulated on`
}

/** The next command to type: a call of the vendor's first text model, otherwise its test. */
function nextCommand(document: CurrentView['document'], place: Record<string, unknown>): string {
  const vendor = String(place.vendor ?? place.preset)
  const served = Object.entries(document.models).filter(
    ([, model]) => model.type === 'text' && model.routes.some((route) => route.vendor === vendor),
  )
  const [uid] = served[0] ?? []
  return uid === undefined ? `Next: tollgate vendors test ${vendor}` : `Next: tollgate call chat "Hi" --model ${uid}`
}

/** Asks the person at the terminal. Without a terminal the command fails. */
async function sellsBelowCost(call: Invocation, belowCostNotes: readonly string[]): Promise<boolean> {
  if (!call.ask) return false
  call.note(`This would be sold below cost:\n${indented(belowCostNotes)}\n`)
  return /^y(es)?$/i.test((await call.ask('Sell below cost all the same? [y/N] ')).trim())
}

function refusal(belowCostNotes: readonly string[]): string {
  return `This would be sold below cost:\n${indented(belowCostNotes)}\nNothing was applied. Give --markup 1.2 (price = cost × 1.2) or --price, or accept the loss with --below-cost.`
}

const indented = (lines: readonly string[]) => lines.map((line) => `  ${line}`).join('\n')

/** A preset by its name, otherwise a custom vendor. */
async function placeOf(call: Invocation): Promise<Record<string, unknown>> {
  const [name = ''] = call.args
  const { items } = await call.api.call<Page<PresetView>>('GET', '/presets')
  const known = items.find((preset) => preset.name === name)
  const url = text(call, 'url')
  if (!known && url === undefined)
    throw unknownPreset(
      name,
      items.map((preset) => preset.name),
    )
  const login = known?.logins.find((one) => one.name === text(call, 'login'))
  const credential = await credentialOf(call, login ?? known)
  return {
    ...(known ? { preset: name } : { vendor: name, formats: (text(call, 'format') ?? 'openai-chat').split(',') }),
    ...(known && text(call, 'format') ? { formats: text(call, 'format')?.split(',') } : {}),
    ...given(call, 'vendor', 'vendor'),
    ...given(call, 'url', 'baseUrl'),
    ...given(call, 'login', 'login'),
    variables: pairs(call, 'set'),
    credential,
  }
}

function unknownPreset(name: string, presets: readonly string[]): CliError {
  const near = nearest(name, presets)
  const hint = near === undefined ? 'See "tollgate presets"' : `Did you mean "${near}"? See "tollgate presets"`
  return new CliError(`There is no preset "${name}". ${hint}, or give --url for a vendor of your own.`, 2)
}

async function credentialOf(
  call: Invocation,
  known: Pick<PresetView, 'credential'> | undefined,
): Promise<{ name?: string; value?: string }> {
  const named = text(call, 'key-env')
  const name = named ?? known?.credential ?? undefined
  const value = call.values['key-stdin'] ? (await call.input()).trim() : name && call.settings.credential(name)
  if (call.values['key-stdin'] && !value) throw new CliError('There was no credential on standard input.', 2)
  return { ...(named === undefined ? {} : { name: named }), ...(value ? { value } : {}) }
}

/** The first of the models that were named, for the test. */
function probed(call: Invocation): { model?: string } {
  const first = text(call, 'models')?.split(',')[0]?.split('=')[0]
  return first === undefined || first === 'all' ? {} : { model: first }
}

function choice(call: Invocation, test: VendorTest | undefined): Record<string, unknown> {
  const named = text(call, 'models')
  const prices = { ...priced(call, 'cost', 'cost'), ...priced(call, 'price', 'pricing') }
  if (named === undefined) return given(call, 'credits-per-dollar', 'creditsPerDollar')
  if (named === 'all' && !test?.models.length)
    throw new CliError('"--models all" needs a vendor that lists its models, and the test.', 2)
  const names = named === 'all' ? (test?.models ?? []) : named.split(',')
  const models = names.map((entry) => {
    // Names of models may contain anything except these two characters.
    const [model, uid] = named === 'all' ? [entry] : entry.split('=')
    return { model, ...(uid ? { uid } : {}), ...prices }
  })
  return { models, ...given(call, 'credits-per-dollar', 'creditsPerDollar') }
}

function given(call: Invocation, option: string, as: string): Record<string, string> {
  const value = text(call, option)
  return value === undefined ? {} : { [as]: value }
}
