// What the file of `tollgate apply` says of an account's purses: the prices for its customers, and where it is told of them.
import { type Api, Refused } from '../../cli/api.ts'
import { at } from '../../cli/command.ts'
import type { DeclaredPurses } from './file.ts'
import { isSame, type Place, type Plan, type Step } from './steps.ts'

type Prices = NonNullable<DeclaredPurses['prices']>
type Events = NonNullable<DeclaredPurses['events']>

const pricesOf = (api: Api, id: string) =>
  api.call<Prices & { version: number }>('GET', at`/accounts/${id}/purse-prices`)
const eventsOf = (api: Api, id: string) => api.call<Events>('GET', at`/accounts/${id}/purse-events`)

/** The order of models counts: the first rule for one is its price. */
export async function planPurses(api: Api, place: Place, { prices, events }: DeclaredPurses): Promise<Plan['steps']> {
  const steps: Step[] = []
  const change = (what: string, body: object, sentence: string) =>
    steps.push({
      kind: 'change',
      sentences: [`Account ${place.name}: ${sentence}.`],
      run: async () => void (await api.call('PUT', `${at`/accounts/${place.id}/`}${what}`, body)),
    })
  if (prices) {
    const { markupPercent, models, volume } =
      place.id === undefined ? { markupPercent: '0', models: [], volume: [] } : await pricesOf(api, place.id)
    if (!isSame({ markupPercent, models, volume }, prices)) {
      const own = prices.models.map(({ model }) => model)
      const others = own.length === 0 ? '' : `, with rules of their own for ${own.join(', ')}`
      change('purse-prices', prices, `its customers pay ${prices.markupPercent} % on what it pays${others}`)
    }
  }
  if (events) {
    const { url, settled } = place.id === undefined ? { url: null, settled: false } : await eventsOf(api, place.id)
    // An address may hold a secret.
    const where = events.url === null ? 'nowhere' : `to ${URL.parse(events.url)?.host ?? 'an address'}`
    const which = events.settled ? ', with each call that is settled' : ''
    if (!isSame({ url, settled }, events)) change('purse-events', events, `events of its purses go ${where}${which}`)
  }
  return steps
}

/** As the file says it; nothing, where the account has no price list and is told of nothing, or the gateway has no purses. */
export async function exportedPurses(api: Api, id: string): Promise<{ purses?: DeclaredPurses }> {
  const found = await Promise.all([pricesOf(api, id), eventsOf(api, id)]).catch((error: unknown) => {
    if (error instanceof Refused && error.status === 404) return undefined
    throw error
  })
  if (!found) return {}
  const [{ version, markupPercent, models, volume }, { url, settled }] = found
  const prices = version === 0 ? {} : { prices: { markupPercent, models, volume } }
  const purses = { ...prices, ...(url === null ? {} : { events: { url, settled } }) }
  return Object.keys(purses).length === 0 ? {} : { purses }
}
