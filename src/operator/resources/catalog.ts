// The catalog as an operator reads and replaces it.

import { z } from 'zod'
import { type CatalogInput, checkDocument, credentialName, credentialsOf } from '../../catalog/document.ts'
import { belowCostNotes } from '../../catalog/margin.ts'
import { allSections } from '../../catalog/section.ts'
import { withSimulated } from '../../catalog/simulated.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import {
  type Applied,
  appliedView,
  checkView,
  currentView,
  vendorCheckView,
  versionDocumentView,
  versionView,
} from '../../catalog/views.ts'
import type { By } from '../../database/audit.ts'
import type { Queryable } from '../../database/database.ts'
import { Fault } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import type { Credentials } from '../../upstream/credentials/credentials.ts'
import { type Actor, dryRun, isDryRun, type Resource, requireCredits, resource, secret, text } from '../resource.ts'
import { checkMoves, type Values } from './credential-moves.ts'
import { changeModel } from './model-change.ts'

const DOCUMENT_BYTES_MAX = 4 * 1024 * 1024

const json = z
  .unknown()
  .refine((value) => typeof value === 'object' && value !== null, 'must be a catalog document')
  .describe('A whole catalog, as GET /catalog answers it.')

/** Rejects values for credentials that the document does not have. Other problems are reported when it is applied. */
function checkNamed(document: unknown, names: readonly string[]): void {
  const checked = names.length > 0 ? checkDocument(document) : undefined
  if (!checked?.ok) return
  const named = Object.values(checked.document.vendors).flatMap((vendor) =>
    credentialsOf(vendor).map(({ name }) => name),
  )
  const stranger = names.find((name) => !named.includes(name))
  if (stranger !== undefined)
    throw new Fault('request_invalid', { message: `No vendor of this catalog names the credential ${stranger}.` })
}

const givenValues = z
  .record(credentialName, secret)
  .default({})
  .describe('Values of credentials that its vendors name, stored together with the document or not at all.')

/** Runs in the transaction that applies the document: checks whether its credentials may be used at its addresses. */
type Take = (document: unknown, current: CatalogInput, tx: Queryable) => Promise<void>

const overtaken = (basedOn: number, version: number) =>
  new Fault('conflict', {
    message: `The change was made for version ${basedOn} of the catalog, and version ${version} is current by now. Nothing was changed; review it again.`,
  })

/** What decides how many credits a payment brings, or that they are free. */
const sellingIn = (document: unknown) =>
  JSON.stringify(allSections().flatMap(({ name, sells }) => (sells ? [Object(document)[name]] : []))) // The document is checked when it is applied.

interface CatalogDeps {
  readonly catalog: CatalogStore
  readonly credentials: Credentials
}

export function catalogResources({ catalog, credentials }: CatalogDeps): Resource[] {
  /** Stores the given values in the transaction of `apply`. */
  async function withValues(
    values: Values,
    { actor, by }: { actor: Actor; by: By },
    apply: (take: Take) => Promise<Applied>,
  ): Promise<Applied> {
    const applied = await apply(async (document, current, tx) => {
      if (sellingIn(document) !== sellingIn(current)) requireCredits(actor)
      await checkMoves(actor, document, { current, credentials, catalog, values })
      checkNamed(document, Object.keys(values))
      for (const [name, value] of Object.entries(values)) await credentials.storeWith(tx, name, value, by)
    })
    if (Object.keys(values).length > 0) await credentials.noticed()
    return applied
  }

  return [
    resource('GET /catalog', 'catalog:read', {
      title: 'Show the catalog',
      answer: currentView,
      async run() {
        const { version, input, document } = catalog.current
        const info = (await catalog.versions()).find((entry) => entry.version === version)
        // The version in force is among the newest.
        return { ...info!, document: input, notes: belowCostNotes(document) }
      },
    }),
    resource('PUT /catalog', 'catalog:write', {
      title: 'Replace the catalog',
      query: z.strictObject({ dryRun }),
      body: z.strictObject({
        document: json,
        note: text(200, 0).default(''),
        basedOn: z.number().int().min(1).optional().describe('Rejected with 409 if another version is current by now.'),
        credentials: givenValues,
      }),
      bodyBytesMax: DOCUMENT_BYTES_MAX,
      answer: z.union([appliedView, checkView]),
      async run({ query, body: { document, note, basedOn, credentials: values }, actor, by }) {
        if (isDryRun(query)) {
          await checkMoves(actor, document, { current: catalog.current.input, credentials, catalog, values })
          return catalog.check(document)
        }
        return withValues(values, { actor, by }, (take) =>
          catalog.amend(
            async (current, tx, version) => {
              await take(document, current, tx)
              if (basedOn !== undefined && basedOn !== version) throw overtaken(basedOn, version)
              return document
            },
            by,
            note,
          ),
        )
      },
    }),
    resource('PATCH /catalog', 'catalog:write', {
      title: 'Change parts of the catalog',
      body: z.strictObject({
        allClientFormats: z.boolean().optional().describe('Whether all text models have all client formats.'),
        simulated: z.boolean().optional().describe('Whether what only simulated vendors serve is offered.'),
      }),
      answer: appliedView,
      run: ({ body: { simulated, ...formats }, by }) =>
        catalog.amend(
          (current) => ({ ...(simulated === undefined ? current : withSimulated(current, simulated)), ...formats }),
          by,
          `${simulated === undefined ? 'every client format' : 'what is simulated'}: ${(simulated ?? formats.allClientFormats) ? 'on' : 'off'}`,
        ),
    }),
    resource('GET /catalog/versions', 'catalog:read', {
      title: 'List the versions of the catalog',
      query: z.strictObject({ limit: z.string().optional(), cursor: z.string().optional() }),
      answer: page(versionView),
      run: async () => ({ items: await catalog.versions(), next: null }),
    }),
    resource('GET /catalog/versions/{version}', 'catalog:read', {
      title: 'Show a version of the catalog',
      answer: versionDocumentView,
      async run({ params: { version } }) {
        if (!/^[1-9]\d{0,8}$/.test(version))
          throw new Fault('not_found', { message: 'There is no such catalog version.' })
        const { version: found, input: document } = await catalog.at(Number(version))
        return { version: found, document }
      },
    }),
    resource('POST /catalog/rollback', 'catalog:write', {
      title: 'Go back to an earlier catalog',
      query: z.strictObject({ dryRun }),
      body: z.strictObject({ version: z.number().int().min(1).max(2_147_483_647), credentials: givenValues }),
      answer: z.union([appliedView, vendorCheckView]),
      async run({ query, body: { version, credentials: values }, actor, by }) {
        if (!isDryRun(query)) return withValues(values, { actor, by }, (take) => catalog.rollback(version, by, take))
        const { input: document } = await catalog.at(version)
        await checkMoves(actor, document, { current: catalog.current.input, credentials, catalog, values })
        const { models, endpoints } = catalog.current.input
        const unservedProducts = Object.keys({ ...models, ...endpoints }).filter(
          (uid) => !Object.hasOwn(document.models, uid) && !Object.hasOwn(document.endpoints, uid),
        )
        return { ...catalog.check(document), unservedProducts, document }
      },
    }),
    changeModel(catalog),
  ]
}
