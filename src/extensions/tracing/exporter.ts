// OpenTelemetry traces, if an endpoint is configured: a span per call, per stage and per vendor attempt, sent as
// OTLP/HTTP in JSON. The caller's `traceparent` is honoured, so that our spans join its trace.
import type { Log } from '../../kernel/log.ts'
import type { World } from '../../kernel/world.ts'
import type { Upstream } from '../../upstream/call.ts'

export interface TracedStage {
  readonly name: string
  readonly startMs: number
  readonly endMs: number
  /** Set for an upstream call. */
  readonly attempt?: { readonly failed: boolean; readonly attributes: Attributes }
}

type Attributes = Readonly<Record<string, string | number>>

interface TracedCall {
  readonly name: string
  readonly traceparent: string | undefined
  readonly startMs: number
  readonly endMs: number
  readonly status: number
  readonly attributes: Attributes
  readonly stages: readonly TracedStage[]
}

interface Exporter {
  record(call: TracedCall): void
  flush(): Promise<void>
}

const QUEUE_MAX = 5_000
const BATCH = 500
const DEADLINES = { connectMs: 2_000, firstByteMs: 5_000, idleMs: 5_000, totalMs: 10_000 }
const INTERNAL = 1
const SERVER = 2
const CLIENT = 3
const ERROR = 2

function written(attributes: Attributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }))
}

export function createExporter(options: {
  world: World
  upstream: Upstream
  endpoint: string
  serviceName: string
  log: Log
}): Exporter {
  const { world, upstream, log } = options
  const url = `${options.endpoint.replace(/(?<!\/)\/+$/, '')}/v1/traces`
  let queue: object[] = []
  let dropped = 0

  const id = (bytes: number) => world.bytes(bytes).toString('hex')
  const nanos = (ms: number) => `${Math.round(ms * 1000)}000`

  return {
    record(call) {
      if (queue.length >= QUEUE_MAX) {
        dropped += 1
        return
      }
      const parent = /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/.exec(call.traceparent ?? '')
      const traceId = parent?.[1] ?? id(16)
      const spanId = id(8)
      const span = (name: string, startMs: number, endMs: number, more: object) => ({
        traceId,
        name,
        startTimeUnixNano: nanos(startMs),
        endTimeUnixNano: nanos(endMs),
        ...more,
      })
      queue.push(
        span(call.name, call.startMs, call.endMs, {
          spanId,
          ...(parent ? { parentSpanId: parent[2] } : {}),
          kind: SERVER,
          status: call.status >= 500 ? { code: ERROR } : {},
          attributes: written({ ...call.attributes, 'http.response.status_code': call.status }),
        }),
        ...call.stages.map(({ name, startMs, endMs, attempt }) =>
          span(name, startMs, endMs, {
            spanId: id(8),
            parentSpanId: spanId,
            kind: attempt ? CLIENT : INTERNAL,
            ...(attempt && { status: attempt.failed ? { code: ERROR } : {}, attributes: written(attempt.attributes) }),
          }),
        ),
      )
    },
    async flush() {
      while (queue.length > 0) {
        const spans = queue.slice(0, BATCH)
        queue = queue.slice(BATCH)
        const body = JSON.stringify({
          resourceSpans: [
            {
              resource: { attributes: [{ key: 'service.name', value: { stringValue: options.serviceName } }] },
              scopeSpans: [{ scope: { name: 'tollgate' }, spans }],
            },
          ],
        })
        try {
          const reply = await upstream.send(
            { method: 'POST', url, headers: { 'content-type': 'application/json' }, body },
            { deadlines: DEADLINES, signal: AbortSignal.timeout(DEADLINES.totalMs) },
          )
          await reply.read(65_536)
          if (reply.status >= 300) throw new Error(`HTTP ${reply.status}`)
        } catch (error) {
          // What is thrown here is an error.
          log.warn({ why: (error as Error).message, spans: spans.length, dropped }, 'traces could not be sent')
          return
        }
      }
    },
  }
}
