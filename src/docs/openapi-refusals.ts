// The refusals in the OpenAPI document: the bodies of each surface, and the faults that an endpoint can answer with.
import type { JsonSchema, Surface } from '../catalog/endpoint.ts'
import { component, integer, object, string } from '../catalog/schema.ts'
import { FAULTS } from '../kernel/fault.ts'

const nestedError = object({ message: string, type: string, param: { type: ['string', 'null'] }, code: string }, [
  'message',
  'type',
])

/** The error body of each surface. */
const BODIES: Record<Surface, JsonSchema> = {
  native: object({ success: { const: false }, error: object({ code: integer, message: string }), requestId: string }),
  chat: object(
    { code: integer, message: string, type: { const: 'api_error' }, requestId: string, error: nestedError },
    ['code', 'message', 'type'],
  ),
  images: object({ code: integer, message: string, type: { const: 'api_error' }, error: nestedError }, [
    'code',
    'message',
    'type',
  ]),
  responses: object(
    { code: integer, message: string, type: { const: 'api_error' }, requestId: string, error: nestedError },
    ['code', 'message', 'error'],
  ),
  messages: object(
    {
      type: { const: 'error' },
      error: object({ type: string, message: string, details: object({ error_code: string }) }, ['type', 'message']),
      request_id: string,
      code: integer,
      message: string,
    },
    ['type', 'error'],
  ),
  gemini: object({
    error: object({ code: integer, message: string, status: string, details: { type: 'array', items: object({}) } }),
  }),
}

function errorName(surface: string): string {
  return `${surface.charAt(0).toUpperCase()}${surface.slice(1)}Error`
}

export const ERROR_SCHEMAS: Readonly<Record<string, JsonSchema>> = Object.fromEntries(
  Object.entries(BODIES).map(([surface, schema]) => [errorName(surface), schema]),
)

/** What asks: the faults that can befall it follow. */
interface Asked {
  readonly method: string
  /** Absent: it is free of charge, and no vendor hears of it. */
  readonly sells?: string
}

/** The faults that an endpoint can answer with, by status. */
function faultsOf(asked: Asked): Map<number, string[]> {
  const byStatus = new Map<number, string[]>()
  const free = asked.sells === undefined
  for (const fault of Object.values(FAULTS)) {
    if (fault.status === 405) continue
    if (free && (fault.blame === 'upstream' || [402, 422].includes(fault.status))) continue
    if (asked.method === 'GET' && fault.status === 413) continue
    const line = `\`${fault.code}\` ${fault.text}`
    byStatus.set(fault.status, [...(byStatus.get(fault.status) ?? []), line])
  }
  return byStatus
}

/** One answer for each status, with the lines of those faults that have it. */
export function refusals(asked: Asked, surface: Surface): Record<string, unknown> {
  return Object.fromEntries(
    [...faultsOf(asked)].map(([status, lines]) => [
      status,
      {
        description: lines.join('\n\n'),
        ...(status === 429 || status === 503
          ? { headers: { 'retry-after': { description: 'Seconds until trying again makes sense.', schema: integer } } }
          : {}),
        content: { 'application/json': { schema: component(errorName(surface)) } },
      },
    ]),
  )
}
