// Where usage goes: destinations, their customers and credentials, and FOCUS files.
import * as z from 'zod'
import type { Branding } from '../../branding/branding.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import type { Credentials } from '../../credentials/credentials.ts'
import type { Database } from '../../database/database.ts'
import { focusCsv } from '../../exports/download.ts'
import { boundTo, type Exports } from '../../exports/exports.ts'
import {
  customerName,
  exportCustomer,
  exportInput,
  exportPage,
  exportPatch,
  exportTest,
  exportView,
  focusSummary,
  namedCredential,
} from '../../exports/views.ts'
import { invalid } from '../../kernel/fault.ts'
import { page } from '../../kernel/view.ts'
import { webhookSecretView } from '../../ledger/views.ts'
import type { Billing } from '../../reports/billing.ts'
import { id, paging, type Resource, range, resource, secret } from '../resource.ts'

export interface ExportDeps {
  readonly exports: Exports
  readonly credentials: Credentials
  readonly database: Database
  readonly billing: Billing
  readonly branding: Branding
  readonly catalog: CatalogStore
  readonly webhookSecret: (account: string) => string
}

/** A range of days, or of times; both ends are needed. */
const days = z.strictObject(range)

function wholeRange({ from, to }: z.output<typeof days>): { fromMs: number; toMs: number } {
  if (from === undefined) throw invalid('from: is missing.', 'from')
  if (to === undefined) throw invalid('to: is missing.', 'to')
  return { fromMs: from, toMs: to }
}

export function exportResources(deps: ExportDeps): Resource[] {
  const { exports, credentials, webhookSecret } = deps
  return [
    resource('GET /exports', 'exports:read', {
      answer: exportPage,
      run: async () => ({ items: await exports.list(), next: null }),
    }),
    resource('POST /exports', 'exports:write', {
      body: exportInput,
      answer: exportView,
      run: ({ body, by }) => exports.create(body, by),
    }),
    // Receivers of the gateway's own webhooks, alerts among them, check their signatures by it.
    resource('GET /webhook-secret', 'exports:write', {
      answer: webhookSecretView,
      run: () => ({ secret: webhookSecret('') }),
    }),
    resource('GET /exports/{id}', 'exports:read', { answer: exportView, run: ({ params }) => exports.read(params.id) }),
    resource('PATCH /exports/{id}', 'exports:write', {
      body: exportPatch,
      answer: exportView,
      run: ({ params, body, by }) => exports.change(params.id, body, by),
    }),
    resource('DELETE /exports/{id}', 'exports:write', {
      answer: exportView,
      run: ({ params, by }) => exports.remove(params.id, by),
    }),
    resource('POST /exports/{id}/test', 'exports:write', {
      answer: exportTest,
      run: ({ params }) => exports.test(params.id),
    }),
    resource('POST /exports/{id}/pause', 'exports:write', {
      answer: exportView,
      run: ({ params, by }) => exports.pause(params.id, by),
    }),
    resource('POST /exports/{id}/resume', 'exports:write', {
      answer: exportView,
      run: ({ params, by }) => exports.resume(params.id, by),
    }),
    resource('POST /exports/{id}/backfill', 'exports:write', {
      body: days,
      answer: exportView,
      run: ({ params, body, by }) => exports.backfill(params.id, wholeRange(body), by),
    }),
    resource('GET /exports/{id}/customers', 'exports:read', {
      query: z.strictObject(paging),
      answer: page(exportCustomer),
      run: ({ params, query }) => exports.customers(params.id, query),
    }),
    resource('PUT /exports/{id}/customers', 'exports:write', {
      body: z.strictObject({ account: id, customer: customerName.nullable() }),
      answer: page(exportCustomer),
      run: async ({ params, body, by }) => ({
        items: await exports.nameCustomer(params.id, body.account, body.customer, by),
        next: null,
      }),
    }),
    resource('PUT /exports/{id}/credential', 'exports:write', {
      body: z.strictObject({ value: secret }),
      answer: namedCredential,
      async run({ params, body, by }) {
        const { settings } = await exports.read(params.id)
        const { credential: name, url } = settings
        if (typeof name !== 'string') throw invalid('This export needs no credential.')
        await credentials.store(boundTo(name, String(url)), body.value, by)
        return { name, present: true }
      },
    }),
    resource('GET /focus', 'exports:read', {
      query: days,
      answer: focusSummary,
      async run({ query }) {
        const { fromMs, toMs } = wholeRange(query)
        const { worth } = await deps.billing.get()
        const at = (ms: number) => new Date(ms).toISOString()
        return { from: at(fromMs), to: at(toMs), currency: worth?.currency ?? null }
      },
      csv: ({ query }) => focusCsv(deps, wholeRange(query)),
    }),
  ]
}
