// Where credentials may be sent. An operator must not be able to send a secret that they do not know to an address of
// their choice.
import { type CatalogInput, checkDocument } from '../../catalog/document.ts'
import { readPresets } from '../../catalog/preset.ts'
import { isSandbox } from '../../catalog/simulated.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import { addressesOf, belongsTo, namedBy, originOf } from '../../catalog/vendor-edit.ts'
import { Fault } from '../../kernel/fault.ts'
import { isMetadataHost } from '../../upstream/address.ts'
import type { Credentials } from '../../upstream/credentials/credentials.ts'
import { type Actor, requireRight } from '../resource.ts'

export function notAtHome(name: string, address: string, param = 'credential.value'): Fault {
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
