// Routing rules of the catalog, by key, labels, header or model of a call.
import * as z from 'zod'
import { region } from './preference-body.ts'

const names = z.array(z.string().min(1).max(100)).min(1).max(50)

/** All given conditions must match. */
const when = z.strictObject({
  /** Ids of keys; keys that replaced them match too. */
  keys: names.optional(),
  /** Labels and their values. */
  labels: z.record(z.string().min(1).max(64), z.string().max(64)).optional(),
  /** Headers and their values. */
  headers: z
    .record(
      z.string().regex(/^x-[a-z0-9-]{1,60}$/, 'must be a header in lower case that begins with "x-"'),
      z.string().max(200),
    )
    .optional(),
  /** The model that is asked for. */
  models: names.optional(),
})

/** Shadow traffic: copies of some calls, paid by the operator. */
const shadow = z
  .strictObject({
    /** Absent: the model that the call goes to. */
    model: z.string().min(1).max(100).optional(),
    /** Absent: any vendor of the model. */
    vendor: z.string().min(1).max(100).optional(),
    /** The fraction of matching calls, from 0 to 1. */
    share: z.number().min(0).max(1),
  })
  .refine(({ model, vendor }) => model !== undefined || vendor !== undefined, 'must name a model or a vendor')

const rule = z.strictObject({
  name: z.string().trim().min(1).max(60),
  when: when.default({}),
  /** The model to use instead of the requested one. */
  model: z.string().min(1).max(100).optional(),
  /** Vendors that are tried first, in this order, after those that the caller prefers. */
  prefer: names.optional(),
  only: names.optional(),
  ignore: names.optional(),
  regions: z.array(region).min(1).max(50).optional(),
  /** Where copies of text calls are sent; the caller does not wait for them. */
  shadow: shadow.optional(),
})
export type RoutingRule = z.output<typeof rule>

export const routingRules = z.array(rule).max(200)

interface Named {
  readonly vendors: Readonly<Record<string, unknown>>
  readonly models: Readonly<
    Record<
      string,
      {
        readonly type: string
        readonly contextFallback?: string | undefined
        readonly limits: { readonly contextTokens?: number | undefined }
      }
    >
  >
  readonly routing?: { readonly rules?: readonly RoutingRule[] | undefined } | undefined
}

/** Problems of rules: unknown names, and context fallbacks whose context is not larger. */
export function routingProblems({ vendors, models, routing }: Named) {
  const problems: { readonly path: readonly (string | number)[]; readonly message: string }[] = []
  const isVendor = (name: string) => Object.keys(vendors).some((one) => one === name || one.startsWith(`${name}/`))
  for (const [at, one] of (routing?.rules ?? []).entries()) {
    const path = ['routing', 'rules', at]
    if (one.model !== undefined && !Object.hasOwn(models, one.model))
      problems.push({ path: [...path, 'model'], message: `there is no model "${one.model}"` })
    for (const field of ['prefer', 'only', 'ignore'] as const)
      for (const name of one[field] ?? [])
        if (!isVendor(name)) problems.push({ path: [...path, field], message: `there is no vendor "${name}"` })
    const { model: copy, vendor } = one.shadow ?? {}
    if (copy !== undefined && !(Object.hasOwn(models, copy) && models[copy]?.type === 'text'))
      problems.push({ path: [...path, 'shadow', 'model'], message: `there is no text model "${copy}"` })
    if (vendor !== undefined && !isVendor(vendor))
      problems.push({ path: [...path, 'shadow', 'vendor'], message: `there is no vendor "${vendor}"` })
  }
  for (const [uid, { contextFallback, type, limits }] of Object.entries(models)) {
    if (contextFallback === undefined) continue
    const next = Object.hasOwn(models, contextFallback) ? models[contextFallback] : undefined
    const reads = next?.limits.contextTokens ?? Number.POSITIVE_INFINITY
    const isLonger =
      type === 'text' && next?.type === 'text' && reads > (limits.contextTokens ?? Number.POSITIVE_INFINITY)
    if (!isLonger)
      problems.push({
        path: ['models', uid, 'contextFallback'],
        message: 'must be a text model with more contextTokens than this one, which needs contextTokens of its own',
      })
  }
  return problems
}
