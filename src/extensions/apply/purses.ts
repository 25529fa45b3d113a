// What the file of `tollgate apply` says of an account's purses: the prices for its customers, how they pay, and where
// it is told of them.
import { type Api, Refused } from '../../cli/api.ts'
import { at } from '../../cli/command.ts'
import { query } from '../../cli/table.ts'
import { fingerprintOf } from '../../kernel/secret.ts'
import type { DeclaredPurses } from './file.ts'
import { type Context, inWords, isSame, type Place, type Plan, type Step, secretAt } from './steps.ts'

type Prices = NonNullable<DeclaredPurses['prices']>
type Payments = NonNullable<DeclaredPurses['payments']>
type Events = NonNullable<DeclaredPurses['events']>
type PaymentFields = Omit<Payments, 'secrets'>

const pricesOf = (api: Api, id: string) =>
  api.call<Prices & { version: number }>('GET', at`/accounts/${id}/purse-prices`)
const paymentsOf = (api: Api, id: string, salt?: string) =>
  api.call<PaymentFields & { fingerprints?: Record<string, string> }>(
    'GET',
    at`/accounts/${id}/purse-payments` + query({ salt }),
  )
const eventsOf = (api: Api, id: string) => api.call<Events>('GET', at`/accounts/${id}/purse-events`)

const PAYMENT_WORDS: Readonly<Record<keyof PaymentFields, string>> = {
  provider: 'provider',
  currency: 'currency',
  pricePerCredit: 'price of a credit',
  minimum: 'minimum',
  maximum: 'maximum',
  name: 'name on their page',
  color: 'color on light pages',
  colorDark: 'color on dark pages',
  issuer: 'issuer of invoices',
}
const PAYMENT_FIELDS = Object.keys(PAYMENT_WORDS) as (keyof PaymentFields)[] // its own names

/** The order of models counts: the first rule for one is its price. */
export async function planPurses(
  context: Context,
  place: Place,
  { prices, payments, events }: DeclaredPurses,
  path: readonly PropertyKey[],
): Promise<Plan['steps']> {
  const { api } = context
  const steps: Step[] = []
  const change = (method: 'PUT' | 'PATCH', what: string, body: object, ...said: string[]) =>
    steps.push({
      kind: 'change',
      sentences: said.map((sentence) => `Account ${place.name}: ${sentence}.`),
      run: async () => void (await api.call(method, `${at`/accounts/${place.id}/`}${what}`, body)),
    })
  if (prices) {
    const { markupPercent, models, volume } =
      place.id === undefined ? { markupPercent: '0', models: [], volume: [] } : await pricesOf(api, place.id)
    if (!isSame({ markupPercent, models, volume }, prices)) {
      const own = prices.models.map(({ model }) => model)
      const others = own.length === 0 ? '' : `, with rules of their own for ${own.join(', ')}`
      change('PUT', 'purse-prices', prices, `its customers pay ${prices.markupPercent} % on what it pays${others}`)
    }
  }
  if (payments) {
    const { body, said } = await changedPayments(context, place, payments, [...path, 'payments'])
    if (said.length > 0) change('PATCH', 'purse-payments', body, ...said)
  }
  if (events) {
    const { url, settled } = place.id === undefined ? { url: null, settled: false } : await eventsOf(api, place.id)
    // An address may hold a secret.
    const where = events.url === null ? 'nowhere' : `to ${URL.parse(events.url)?.host ?? 'an address'}`
    const which = events.settled ? ', with each call that is settled' : ''
    if (!isSame({ url, settled }, events))
      change('PUT', 'purse-events', events, `events of its purses go ${where}${which}`)
  }
  return steps
}

/**
 * Fields that the file does not name stay as they are. Secrets are compared by fingerprint; equal values are not sent.
 */
async function changedPayments(
  { api, world, file, secrets: places }: Context,
  { id }: Place,
  { secrets, ...wanted }: Payments,
  path: readonly PropertyKey[],
): Promise<{ body: object; said: string[] }> {
  const salt = world.bytes(16).toString('hex')
  const references = Object.entries(secrets).flatMap(([name, one]) => (one === undefined ? [] : [[name, one] as const]))
  const current = id === undefined ? {} : await paymentsOf(api, id, references.length > 0 ? salt : undefined)
  const shown = (value: PaymentFields[keyof PaymentFields]) =>
    typeof value === 'object' ? inWords(value?.name) : inWords(value)
  const changed = PAYMENT_FIELDS.filter((one) => wanted[one] !== undefined && !isSame(wanted[one], current[one]))
  const said = changed.map((one) => {
    const [was, is] = [shown(current[one]), shown(wanted[one])]
    const how = was === is ? 'gets other details' : `was ${was} and becomes ${is}`
    return `the ${PAYMENT_WORDS[one]} for payments by customers ${how}`
  })
  const values: Record<string, string> = {}
  for (const [name, reference] of references) {
    const value = await secretAt(places, reference, file.at([...path, 'secrets', name]))
    if (current.fingerprints?.[name] !== (await fingerprintOf(value, salt))) values[name] = value
  }
  const stored = Object.keys(values)
  const fields = Object.fromEntries(changed.map((one) => [one, wanted[one]]))
  return {
    body: { ...fields, ...(stored.length > 0 ? { secrets: values } : {}) },
    said: [...said, ...stored.map((name) => `the secret ${name} for payments by customers gets a new value`)],
  }
}

/**
 * As the file says it; nothing, where the account has no price list, sells nothing and is told of nothing, or the
 * gateway has no purses.
 */
export async function exportedPurses(api: Api, id: string): Promise<{ purses?: object }> {
  const found = await Promise.all([pricesOf(api, id), paymentsOf(api, id), eventsOf(api, id)]).catch(
    (error: unknown) => {
      if (error instanceof Refused && error.status === 404) return undefined
      throw error
    },
  )
  if (!found) return {}
  const [{ version, markupPercent, models, volume }, current, { url, settled }] = found
  const prices = version === 0 ? {} : { prices: { markupPercent, models, volume } }
  const set = PAYMENT_FIELDS.filter((one) => (current[one] ?? 'off') !== 'off')
  const payments = set.length === 0 ? {} : { payments: Object.fromEntries(set.map((one) => [one, current[one]])) }
  const purses = { ...prices, ...payments, ...(url === null ? {} : { events: { url, settled } }) }
  return Object.keys(purses).length === 0 ? {} : { purses }
}
