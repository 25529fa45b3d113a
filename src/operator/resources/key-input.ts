// What may be sent about a key.
import * as z from 'zod'
import { keyRouting } from '../../admission/views.ts'
import { LABEL_NAME } from '../../kernel/label.ts'
import { limitsInput } from '../../meter/limits.ts'
import { id, moment, text } from '../resource.ts'

/** A replaced key works for at most a month. */
const OVERLAP_SECONDS_MAX = 30 * 86_400
const OVERLAP_SECONDS = 86_400

const labelName = z
  .string()
  .regex(LABEL_NAME, 'must be the name of a label: letters, digits or any of . _ : / - , beginning with a letter')

const fields = {
  name: text(100).describe('A new name'),
  models: z
    .array(text(100))
    .min(1, 'must name at least one model; null allows all')
    .max(500)
    .nullable()
    .optional()
    .meta({ description: 'Only these models, socialapi or siteanalytics', none: 'all' }),
  endpoints: z
    .array(text(100))
    .min(1, 'must name at least one endpoint; null allows all')
    .max(100)
    .nullable()
    .optional()
    .meta({ description: 'Only these endpoints, such as chat,embeddings', none: 'all' }),
  requiredLabels: z
    .array(labelName)
    .min(1, 'must name at least one label; null requires none')
    .max(8)
    .nullable()
    .optional()
    .meta({ description: 'Labels that every call must carry, such as user,feature', option: 'require-labels' }),
  teamId: id
    .nullable()
    .optional()
    .meta({
      description: 'The team or project that it belongs to',
      option: 'team',
      value: 'team',
      refersTo: '/accounts/{id}/teams',
    }),
  memberId: id
    .nullable()
    .optional()
    .meta({
      description: 'The member whose key it is',
      option: 'member',
      value: 'user',
      refersTo: '/accounts/{id}/members',
    }),
  expiresAt: moment
    .nullable()
    .optional()
    .meta({
      description: 'When it ends, such as 2027-01-01T00:00:00Z',
      option: 'expires',
      value: 'time',
      none: 'never',
    }),
  limits: limitsInput.nullable().optional(),
  ipRanges: z
    .array(text(64))
    .min(1, 'must name at least one range; null allows all')
    .max(100)
    .nullable()
    .optional()
    .meta({ description: 'Only from these addresses, such as 10.0.0.0/8', none: 'all' }),
  responseCache: z
    .boolean()
    .nullable()
    .optional()
    .meta({ description: 'Whether the response cache is used', value: 'on|off|model', none: 'model' }),
  routing: keyRouting.nullable().optional(),
}

export const keyCreation = z
  .strictObject({
    ...fields,
    test: z.boolean().optional().describe('A test key: simulated vendors, and credits that cost nothing'),
  })
  .transform(withMs)
export const keyImport = z
  .strictObject({
    ...fields,
    sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be the SHA-256 of the key in 64 hexadecimal digits'),
    last4: z.string().regex(/^[\x21-\x7e]{1,4}$/, 'must be the last four characters of the key'),
  })
  .transform(withMs)
export const keyChange = z.strictObject({ ...fields, name: fields.name.optional() }).transform(withMs)

export const keyRotation = z
  .strictObject({
    ...fields,
    name: fields.name.optional(),
    overlapSeconds: z
      .number()
      .int()
      .min(0)
      .max(OVERLAP_SECONDS_MAX)
      .default(OVERLAP_SECONDS)
      .meta({
        description: 'How long the old key keeps working; a day by default',
        option: 'overlap',
        value: 'seconds',
      }),
  })
  .transform(withMs)

function withMs<T extends { expiresAt?: number | null | undefined }>({ expiresAt, ...rest }: T) {
  return { ...rest, ...(expiresAt === undefined ? {} : { expiresAtMs: expiresAt }) }
}
