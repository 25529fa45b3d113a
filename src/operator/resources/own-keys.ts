// Keys at vendors that an account has brought itself. They are tested when they are stored: at the vendor's address of the catalog and nowhere
// else, so often and no more, and only what came of it is told. Where the vendor is stays the operator's.
import * as z from 'zod'
import { originOf } from '../../catalog/credential-origins.ts'
import type { CatalogDocument } from '../../catalog/document.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import { isForElsewhere, type OwnKeys, ownKeyFeeOf } from '../../credentials/own-keys.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { Fault } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import type { World } from '../../kernel/world.ts'
import type { OwnKeyFee } from '../../meter/own-key-fee.ts'
import { probedRoute } from '../../routing/probe.ts'
import { targetOf } from '../../routing/route.ts'
import type { VendorTest } from '../../routing/views.ts'
import { createMinuteBudget } from '../../upstream/minute-budget.ts'
import { secret } from '../fields.ts'
import { type Resource, resource } from '../resource.ts'
import { type OwnKeyView, ownKeyStored, ownKeyView } from '../views.ts'
import type { ConnectDeps } from './connect.ts'

export interface OwnKeyDeps {
  readonly catalog: CatalogStore
  readonly ownKeys: OwnKeys
  readonly world: World
  readonly sandboxUrl: () => string | undefined
  readonly probe: ConnectDeps['probe']
}

/** For each account: whoever has stolen keys must not find out here which of them work. */
const TESTS_PER_MINUTE = 5

export function ownKeyResources(deps: OwnKeyDeps): Resource[] {
  const { catalog, ownKeys, world } = deps
  const tests = createMinuteBudget(world, TESTS_PER_MINUTE)

  async function list(account: string): Promise<{ items: OwnKeyView[]; next: null }> {
    const { document } = catalog.current
    const stored = new Map((await ownKeys.list(account)).map((one) => [one.vendor, one]))
    const taken = Object.keys(document.vendors).filter((vendor) => takesOwnKeys(vendor, document))
    // One that was stored before the catalog stopped taking it is shown, so that it can be removed.
    const items = [...new Set([...taken, ...stored.keys()])].sort().map((vendor) => {
      const known = stored.get(vendor)
      const { last4 = null, fallback = false, updatedAt } = known ?? {}
      return {
        vendor,
        taken: taken.includes(vendor),
        stored: known !== undefined,
        asksAgain: known !== undefined && isForElsewhere(known, document),
        last4,
        fallback,
        updatedAt: updatedAt?.toISOString() ?? null,
        fee: feeView(document.vendors[vendor]?.ownKeyFee),
        products: productsAt(vendor, document),
      }
    })
    return { items, next: null }
  }

  async function test(account: string, vendorName: string, value: string): Promise<VendorTest> {
    const { document } = catalog.current
    const vendor = document.vendors[vendorName]
    const probed = probedRoute(vendorName, document)
    if (!vendor || !probed || !takesOwnKeys(vendorName, document))
      throw new Fault('conflict', { message: `Own keys for "${vendorName}" are not taken here.` })
    const wait = tests.spend(account, 1)
    if (wait !== undefined)
      throw new Fault('rate_limited', {
        message: `Keys can be tested ${TESTS_PER_MINUTE} times a minute. Try again in ${wait} s.`,
        retryAfterSeconds: wait,
      })
    const { sandboxUrl } = deps
    const named = { ...vendor, credential: 'OWN', headers: {} }
    return deps.probe(targetOf(probed.route, named, probed.uid, { sandboxUrl, credential: () => value }), probed.facts)
  }

  return [
    resource('GET /accounts/{id}/own-keys', 'member', {
      answer: page(ownKeyView),
      run: ({ params }) => list(params.id),
    }),
    resource('PUT /accounts/{id}/own-keys/{name}', 'owner', {
      body: z.strictObject({ value: secret.optional(), fallback: z.boolean().optional() }),
      answer: ownKeyStored,
      async run({ params: { id, name: vendor }, body: { value, fallback }, by }) {
        const before = (await ownKeys.list(id)).find((one) => one.vendor === vendor)
        const allowed = fallback ?? before?.fallback ?? false
        if (value === undefined) {
          if (!before)
            throw new Fault('request_invalid', { message: 'Give the key as "value": none is stored.', param: 'value' })
          await ownKeys.allowFallback(id, { vendor, fallback: allowed }, by)
          return { ...(await list(id)), test: null }
        }
        // The one that it was tested at, whatever the catalog says afterwards.
        const origin = originOf(catalog.current.document.vendors[vendor]?.baseUrl ?? '') ?? ''
        const told = inWords(await test(id, vendor, value), vendor)
        if (told.refused)
          throw new Fault('request_invalid', { message: `${told.message} It was not stored.`, param: 'value' })
        await ownKeys.store(id, { vendor, value, fallback: allowed, origin }, by)
        return { ...(await list(id)), test: { ok: told.ok, message: told.message } }
      },
    }),
    resource('DELETE /accounts/{id}/own-keys/{name}', 'owner', {
      answer: page(ownKeyView),
      async run({ params: { id, name }, by }) {
        if (!(await ownKeys.remove(id, name, by)))
          throw new Fault('not_found', { message: `This account has no key of its own for "${name}".` })
        return list(id)
      },
    }),
  ]
}

/** The catalog has a fee for calls by own keys there. */
function takesOwnKeys(vendor: string, document: CatalogDocument): boolean {
  return document.vendors[vendor]?.ownKeyFee !== undefined || productsAt(vendor, document).length > 0
}

/** What has a route there and a fee for it. */
function productsAt(vendor: string, document: CatalogDocument): OwnKeyView['products'] {
  return Object.entries({ ...document.models, ...document.endpoints }).flatMap(([uid, product]) => {
    if (!product.enabled || !product.routes.some((route) => route.vendor === vendor && route.enabled)) return []
    const fee = ownKeyFeeOf(product, vendor, document)
    return fee ? [{ uid, fee: feeView(fee) ?? {} }] : []
  })
}

function feeView(fee: OwnKeyFee | undefined): OwnKeyView['fee'] {
  if (!fee) return null
  const { call, share } = fee
  return {
    ...(call === undefined ? {} : { call: formatCredits(call) }),
    ...(share === undefined ? {} : { share: formatCredits(share) }),
  }
}

/** For the account, which knows the vendor's name and nothing else of it. */
function inWords({ ok, status }: VendorTest, vendor: string): { ok: boolean; refused: boolean; message: string } {
  if (ok) return { ok, refused: false, message: `${vendor} takes the key.` }
  if (status === 401 || status === 403) return { ok, refused: true, message: `${vendor} does not accept the key.` }
  if (status === 402)
    return { ok, refused: false, message: `${vendor} knows the key, but its account has no money left.` }
  if (status === 429)
    return { ok, refused: false, message: `${vendor} knows the key, but takes no more calls of it for now.` }
  const why = status === null ? 'did not answer' : `answered with a fault (${status})`
  return { ok, refused: false, message: `Whether the key is right could not be found out: ${vendor} ${why}.` }
}
