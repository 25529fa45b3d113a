// The vendor presets, from their presets.

import { ANALYTICS } from '../../src/catalog/analytics.ts'
import { vendorBridge } from '../../src/catalog/bridge.ts'
import { type Preset, type PresetModel, readPresets } from '../../src/catalog/preset.ts'
import { formatCredits } from '../../src/kernel/credits.ts'
import { UNIT_NAMES } from '../../src/meter/kind.ts'
import { code, page, table } from './markdown.ts'

export async function vendorsPage(): Promise<string> {
  const presets = await readPresets()
  return page(
    'Vendors',
    'What `tollgate connect` and the console know beforehand. Prices are the vendors’ list prices in US dollars on the day that is noted: tokens by the million, everything else by the piece.',
    ...presets.flatMap(sectionOf),
  )
}

function sectionOf({
  name,
  title,
  about,
  vendor,
  variables,
  formats,
  prices,
  models,
  replacesVendor,
}: Preset): string[] {
  const served = vendor.bridge === undefined ? undefined : vendorBridge.parse(vendor.bridge).endpoints
  const facts = [
    `- preset ${code(name)}, at ${code(vendor.baseUrl)}`,
    ...Object.entries(variables).map(([blank, what]) => `- ${code(`{${blank}}`)}: ${inCode(what)}`),
    `- credential: ${vendor.credential ? code(vendor.credential) : 'none needed'}`,
    `- speaks ${formats.map(({ protocol, serves }) => code(protocol) + (serves ? ` for ${serves.join(', ')}` : '')).join(', ')}`,
    ...(replacesVendor === undefined || served
      ? []
      : [`- takes over every route of the vendor ${code(replacesVendor)}`]),
    ...(served
      ? [
          `- takes over ${Object.keys(served).length} endpoints of the vendor ${code(replacesVendor ?? '')}; it does not serve ${unservedBy(served)}`,
        ]
      : []),
    prices ? `- list prices noted on ${prices.noted}, from ${prices.from}` : '- no list price noted',
  ]
  const rows = Object.entries(models).map(([model, entry]) => [
    code(model),
    entry.product ? code(entry.product) : '',
    contextOf(entry),
    priceOf(entry),
  ])
  return [
    `## ${title}`,
    ...(about === undefined ? [] : [inCode(about)]),
    facts.join('\n'),
    ...(rows.length > 0 ? [table(['model', 'serves', 'context', 'list price'], rows)] : []),
    ...(served
      ? [
          table(
            ['endpoint', 'what differs'],
            Object.entries(served).map(([uid, { note = '' }]) => [code(uid), note]),
          ),
        ]
      : []),
  ]
}

const unservedBy = (served: object) =>
  ANALYTICS.filter(({ product }) => !Object.hasOwn(served, product))
    .map(({ product }) => code(product))
    .join(', ')

/** Addresses are no links: there may be nothing behind them. */
function inCode(text: string): string {
  return text.replaceAll(/https?:\/\/[\w.:/-]*\w/g, code)
}

function contextOf({ limits }: PresetModel): string {
  return 'contextTokens' in limits ? String(limits.contextTokens) : ''
}

function priceOf({ usd }: PresetModel): string {
  if (!usd) return 'no list price noted'
  return usd
    .map((tier) => {
      const rates = UNIT_NAMES.flatMap((unit) =>
        tier[unit] === undefined ? [] : [`${unit} ${formatCredits(tier[unit])}`],
      )
      return rates.join(', ') + (tier.upTo === undefined ? '' : ` (prompts up to ${tier.upTo})`)
    })
    .join('; ')
}
