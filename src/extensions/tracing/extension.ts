// Traces of calls for OpenTelemetry, and figures by its conventions for generative AI, where an endpoint is configured.
import { defineExtension } from '../../extension.ts'
import { createExporter, type TracedStage } from './exporter.ts'
import { createGenAiMeter, genAiAttributes } from './gen-ai.ts'

export const tracing = defineExtension({
  name: 'tracing',
  tracer({ config, registry, ...parts }) {
    const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SERVICE_NAME: serviceName } = config
    if (!endpoint) return undefined
    const exporter = createExporter({ ...parts, endpoint, serviceName })
    const meter = createGenAiMeter(registry)
    return {
      begin(call, { startedMs, callerHeaders, labels }) {
        const stages: TracedStage[] = []
        const atMs = (elapsedMs: number) => call.atMs + (elapsedMs - startedMs)
        return {
          stage: (name, from, to) => void stages.push({ name, startMs: atMs(from), endMs: atMs(to) }),
          attempt({ vendor, startMs, endMs, status, fault }) {
            const attributes = {
              'tollgate.vendor': vendor,
              ...(status === undefined ? {} : { 'http.response.status_code': status }),
              ...(fault === undefined ? {} : { 'error.type': fault.kind }),
            }
            const span = { name: `attempt ${vendor}`, startMs: atMs(startMs), endMs: atMs(endMs) }
            stages.push({ ...span, attempt: { failed: fault !== undefined, attributes } })
          },
          end(facts) {
            const { id, endpoint: name, product, outcome, atMs: startMs, durationMs, status } = call
            meter(call, facts)
            exporter.record({
              name,
              traceparent: callerHeaders.traceparent,
              startMs,
              endMs: startMs + durationMs,
              status: status ?? 0,
              attributes: {
                'tollgate.request_id': id,
                'tollgate.product': product,
                'tollgate.outcome': outcome ?? '',
                ...genAiAttributes(name, product, { ...facts, session: labels?.session }),
              },
              stages,
            })
          },
        }
      },
      flush: exporter.flush,
    }
  },
})
