// Several credentials of one vendor, added, replaced and taken away while calls run.
import * as z from 'zod'
import { type CatalogInput, credentialName, credentialsOf, type Vendor } from '../../catalog/document.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import { withCredentialNamed, withoutCredentialNamed } from '../../catalog/vendor-credentials.ts'
import type { Credentials } from '../../credentials/credentials.ts'
import { shownEnd } from '../../credentials/own-keys.ts'
import { Fault } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import type { CredentialHealth } from '../../routing/credential-state.ts'
import type { VendorHealth } from '../../routing/vendor.ts'
import { secret } from '../fields.ts'
import { type Resource, resource } from '../resource.ts'
import { type VendorCredentialView, vendorCredentialView } from '../views.ts'

export interface VendorCredentialDeps {
  readonly catalog: CatalogStore
  readonly credentials: Credentials
  readonly vendorHealth: () => readonly VendorHealth[]
  readonly credentialHealth: (vendor: string, credential: string) => CredentialHealth
  /** Jobs that only this credential can look after. */
  readonly openJobs: (vendor: string, credential: string) => Promise<number>
}

export function findVendor({ current }: CatalogStore, name: string): Vendor {
  const { vendors } = current.document
  const vendor = Object.hasOwn(vendors, name) ? vendors[name] : undefined
  if (!vendor) throw new Fault('not_found', { message: `The catalog has no vendor "${name}".` })
  return vendor
}

export function showCredentials(
  vendorName: string,
  vendor: Vendor,
  deps: VendorCredentialDeps,
): VendorCredentialView[] {
  const { credentials, vendorHealth, credentialHealth } = deps
  return credentialsOf(vendor).map(({ name, weight }) => {
    const source = credentials.source(name)
    const value = credentials.get(name)
    const { asideUntilMs, why, status, lastSuccessMs } = credentialHealth(vendorName, name)
    // Whatever succeeded at a vendor that has only one did so by that one.
    const successMs = vendor.credentials
      ? lastSuccessMs
      : vendorHealth().find((one) => one.name === vendorName)?.lastSuccessMs
    return {
      name,
      weight,
      present: source !== 'none',
      source,
      ...(source === 'none' && credentials.unreadable.includes(name) ? { unreadable: true as const } : {}),
      last4: value === undefined ? null : shownEnd(value),
      asideUntil: isoOf(asideUntilMs),
      why,
      status,
      lastSuccessAt: isoOf(successMs ?? null),
    }
  })
}

export function vendorCredentialResources(deps: VendorCredentialDeps): Resource[] {
  const { catalog, credentials } = deps
  const listed = (name: string) => ({ items: showCredentials(name, findVendor(catalog, name), deps), next: null })

  /** `current` is what is stored now, which may be newer than what this process knows. */
  function entryIn(current: CatalogInput, name: string): CatalogInput['vendors'][string] {
    const vendor = Object.hasOwn(current.vendors, name) ? current.vendors[name] : undefined
    if (!vendor) throw new Fault('not_found', { message: `The catalog has no vendor "${name}".` })
    return vendor
  }

  return [
    resource('GET /vendors/{name}/credentials', 'operator', {
      answer: page(vendorCredentialView),
      run: ({ params }) => listed(params.name),
    }),
    resource('PUT /vendors/{name}/credentials/{credential}', 'operator', {
      body: z.strictObject({ value: secret.optional(), weight: z.number().int().min(1).max(1000).optional() }),
      answer: page(vendorCredentialView),
      async run({ params: { name: vendorName, credential }, body: { value, weight }, by }) {
        const name = readName(credential)
        const isNamed = credentialsOf(findVendor(catalog, vendorName)).some((one) => one.name === name)
        if (value === undefined && !isNamed && credentials.source(name) === 'none')
          throw new Fault('request_invalid', {
            message: `${name} is neither stored nor among the variables of the gateway's environment that may be credentials (those with KEY or TOKEN in their name): give its "value".`,
            param: 'value',
          })
        const store = { name, value, by }
        if (isNamed && weight === undefined) {
          if (value !== undefined) await credentials.store(store.name, value, by)
          return listed(vendorName)
        }
        // Value and name in one transaction: either alone would make calls fail.
        await catalog.amend(
          async (current, tx) => {
            const vendor = withCredentialNamed(entryIn(current, vendorName), { name, weight })
            if (value !== undefined) await credentials.storeWith(tx, name, value, by)
            return { ...current, vendors: { ...current.vendors, [vendorName]: vendor } }
          },
          by,
          `${vendorName}: credential ${name}`,
        )
        await credentials.noticed()
        return listed(vendorName)
      },
    }),
    resource('DELETE /vendors/{name}/credentials/{credential}', 'operator', {
      query: z.strictObject({ force: z.enum(['true', 'false']).optional() }),
      answer: page(vendorCredentialView),
      async run({ params: { name: vendorName, credential }, query, by }) {
        const name = readName(credential)
        const named = credentialsOf(findVendor(catalog, vendorName))
        if (!named.some((one) => one.name === name))
          throw new Fault('not_found', { message: `The vendor "${vendorName}" has no credential "${name}".` })
        if (named.length === 1)
          throw new Fault('conflict', {
            message: `It is the only one of "${vendorName}". Add another first, or replace its value.`,
          })
        const jobs = await deps.openJobs(vendorName, name)
        if (jobs > 0 && query.force !== 'true')
          throw new Fault('conflict', {
            message: `${jobs} running jobs were made by ${name}, and only it can look after them. Wait for them, or use force=true: they may then fail, and are refunded.`,
          })
        await catalog.amend(
          (current) => {
            const vendor = withoutCredentialNamed(entryIn(current, vendorName), name)
            return { ...current, vendors: { ...current.vendors, [vendorName]: vendor } }
          },
          by,
          `${vendorName}: without the credential ${name}`,
        )
        const { vendors } = catalog.current.document
        const isElsewhere = Object.values(vendors).some((one) =>
          credentialsOf(one).some((other) => other.name === name),
        )
        if (!isElsewhere) await credentials.remove(name, by)
        return listed(vendorName)
      },
    }),
  ]
}

function readName(given: string): string {
  const read = credentialName.safeParse(given)
  if (read.success) return read.data
  throw new Fault('request_invalid', { message: 'A credential\'s name has upper-case letters, digits and "_" only.' })
}

export function isoOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
