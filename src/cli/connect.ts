// A vendor in one command: its credential, a real test, its models with their prices, and what changes, before it is applied.
import type { Applied, ConnectCheckView, PresetView } from '../catalog/views.ts'
import { parseCredits } from '../kernel/credits.ts'
import type { Page } from '../kernel/view.ts'
import { UNITS } from '../meter/usage.ts'
import type { VendorTest } from '../routing/views.ts'
import { CliError, type Command, type Invocation, type Told, text } from './command.ts'
import { table } from './table.ts'
import { testInWords } from './vendors.ts'

const OPTIONS = {
  'key-env': {
    type: 'string',
    value: 'NAME',
    help: 'The name of the credential. Its value comes from the gateway’s environment, from a stored credential, or from this shell, and is then stored.',
  },
  'key-stdin': { type: 'boolean', help: 'Reads the credential from standard input, to be stored encrypted.' },
  set: { type: 'string', value: 'name=value,…', help: 'A part of the preset’s address, such as resource=my-azure.' },
  url: {
    type: 'string',
    value: 'address',
    help: 'The address, if it is not the preset’s or there is no preset.',
  },
  format: { type: 'string', value: 'name,…', help: 'The format of a vendor without a preset; openai-chat by default.' },
  vendor: { type: 'string', value: 'name', help: 'Its name in the catalog; by default the preset’s.' },
  models: {
    type: 'string',
    value: 'name[=uid],…',
    help: 'The models to offer, and their uids; "all": all that it lists. By default those of the preset.',
  },
  markup: { type: 'string', value: 'factor', help: 'Price = cost × this. By default existing prices stay.' },
  cost: {
    type: 'string',
    value: 'unit=credits,…',
    help: 'Cost of models without a list price: input=100,output=300.',
  },
  price: { type: 'string', value: 'unit=credits,…', help: 'Price of the models, instead of cost × markup.' },
  'credits-per-dollar': { type: 'string', value: 'number', help: 'For list prices; 100 by default.' },
  'below-cost': {
    type: 'boolean',
    help: 'Accepts prices below the vendor’s cost without asking.',
  },
  untested: { type: 'boolean', help: 'Does not call the vendor first.' },
  'dry-run': { type: 'boolean', help: 'Tests the vendor and shows what would change; applies nothing.' },
} as const satisfies Command['options']

export const CONNECT_COMMANDS: readonly Command[] = [
  {
    name: 'connect',
    summary: 'Connects a vendor: credential, real test, models and prices, in one go.',
    args: ['name'],
    options: OPTIONS,
    about:
      'The name is that of a preset (see: tollgate presets), or your own together with --url. Nothing is applied when the test fails.',
    run: connect,
  },
  {
    name: 'presets',
    summary: 'Lists the vendor presets.',
    async run(call) {
      const { items } = await call.api.call<Page<PresetView>>('GET', '/presets')
      const words = table(items, {
        NAME: 'name',
        VENDOR: 'title',
        ADDRESS: 'baseUrl',
        CREDENTIAL: (row) => row.credential ?? 'none needed',
        SPEAKS: (row) => row.formats.join(', '),
        MODELS: (row) => row.models.length,
        'LIST PRICES': (row) => row.prices?.noted ?? 'no list price noted',
      })
      return { answer: items, words }
    },
  },
]

async function connect(call: Invocation): Promise<Told> {
  const place = await placeOf(call)
  const test = call.values.untested
    ? undefined
    : await call.api.call<VendorTest>('POST', '/connect/test', { ...place, ...probed(call) })
  const told = test ? testInWords(test) : ''
  if (test && !test.ok) return { answer: { test, applied: null }, words: `${told}\nNothing was applied.`, failed: true }
  const body = { ...place, ...choice(call, test), ...given(call, 'markup', 'markup') }
  const check = await call.api.call<ConnectCheckView>('POST', '/connect?dryRun=1', body)
  const { problems, changes, notes, losses } = check
  const preview = [told, indented(changes), ...[...notes, ...losses].map((note) => `Note: ${note}`)]
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
      answer: { test, problems, changes, notes, losses },
      words: `${preview}\n${changes.length} changes. Nothing was applied.`,
    }
  const belowCost = losses.length > 0 && (call.values['below-cost'] === true || (await sellsBelowCost(call, losses)))
  if (losses.length > 0 && !belowCost)
    return { answer: { test, losses, applied: null }, words: refusal(losses), failed: true }
  const applied = await call.api.call<Applied>('POST', '/connect', { ...body, belowCost })
  return { answer: { test, ...applied, notes }, words: `${preview}\nVersion ${applied.version} is in force.` }
}

/** Asks whoever sits at the terminal. Where nobody does, it is refused. */
async function sellsBelowCost(call: Invocation, losses: readonly string[]): Promise<boolean> {
  if (!call.ask) return false
  call.note(`This would be sold below cost:\n${indented(losses)}\n`)
  return /^y(es)?$/i.test((await call.ask('Sell below cost all the same? [y/N] ')).trim())
}

function refusal(losses: readonly string[]): string {
  return `This would be sold below cost:\n${indented(losses)}\nNothing was applied. Give --markup 1.2 (price = cost × 1.2) or --price, or accept the loss with --below-cost.`
}

const indented = (lines: readonly string[]) => lines.map((line) => `  ${line}`).join('\n')

/** A preset by its name, else a vendor of one's own. */
async function placeOf(call: Invocation): Promise<Record<string, unknown>> {
  const [name = ''] = call.args
  const { items } = await call.api.call<Page<PresetView>>('GET', '/presets')
  const known = items.find((preset) => preset.name === name)
  const url = text(call, 'url')
  if (!known && url === undefined)
    throw new CliError(`There is no preset "${name}"; see "tollgate presets", or give --url. `, 2)
  const credential = await credentialOf(call, known)
  return {
    ...(known ? { preset: name } : { vendor: name, formats: (text(call, 'format') ?? 'openai-chat').split(',') }),
    ...(known && text(call, 'format') ? { formats: text(call, 'format')?.split(',') } : {}),
    ...given(call, 'vendor', 'vendor'),
    ...given(call, 'url', 'baseUrl'),
    blanks: pairs(call, 'set'),
    credential,
  }
}

async function credentialOf(
  call: Invocation,
  known: PresetView | undefined,
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
    // A model's own name may hold anything but these two.
    const [model, uid] = named === 'all' ? [entry] : entry.split('=')
    return { model, ...(uid ? { uid } : {}), ...prices }
  })
  return { models, ...given(call, 'credits-per-dollar', 'creditsPerDollar') }
}

function priced(call: Invocation, option: string, as: string): Record<string, unknown> {
  if (text(call, option) === undefined) return {}
  const rates = pairs(call, option)
  for (const [unit, rate] of Object.entries(rates))
    if (!UNITS.some((known) => known === unit) || (parseCredits(rate) ?? -1n) < 0n)
      throw new CliError(
        `--${option} takes ${UNITS.join(', ')} with amounts of credits, such as input=100,output=300.`,
        2,
      )
  return { [as]: { unit: 'credits', tiers: [rates] } }
}

function pairs(call: Invocation, option: string): Record<string, string> {
  const entries = (text(call, option) ?? '').split(',').filter(Boolean)
  return Object.fromEntries(
    entries.map((entry) => {
      const at = entry.indexOf('=')
      if (at < 1) throw new CliError(`--${option} takes name=value, not "${entry}".`, 2)
      return [entry.slice(0, at), entry.slice(at + 1)]
    }),
  )
}

function given(call: Invocation, option: string, as: string): Record<string, string> {
  const value = text(call, option)
  return value === undefined ? {} : { [as]: value }
}
