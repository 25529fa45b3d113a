// The Messages format as two clouds offer it: the model in the address, the version in the body, and at Bedrock streams
// in the frames of AWS.
import { isObject, type Json, jsonIn, objectOf, readJson, splice, text } from '../../../kernel/json.ts'
import type { HttpCall } from '../../../upstream/call.ts'
import { type EventMessage, EventStreamDecoder, encodeJson } from '../../../upstream/sse.ts'
import { garbled, OuterRelay, type Target } from '../../protocol.ts'

const VERSIONS = { bedrock: 'bedrock-2023-05-31', vertex: 'vertex-2023-10-16' } as const

/** Converts a call in Anthropic's own form to the form of the cloud. */
export function inCloud(call: HttpCall, { baseUrl, model, cloud }: Target, streams: boolean): HttpCall {
  if (cloud === undefined) return call
  const { 'anthropic-version': _, 'anthropic-beta': beta, ...headers } = call.headers
  const json = readJson(Buffer.from(String(call.body)))
  const add: Record<string, string> = { anthropic_version: JSON.stringify(VERSIONS[cloud]) }
  const name = encodeURIComponent(model)
  if (cloud === 'vertex') {
    const body = splice(json, { remove: ['model', 'anthropic_version'], add })
    const url = `${baseUrl}/models/${name}:${streams ? 'streamRawPredict' : 'rawPredict'}`
    return { ...call, url, headers: beta === undefined ? headers : { ...headers, 'anthropic-beta': beta }, body }
  }
  // Bedrock has no header for it.
  if (beta !== undefined) add.anthropic_beta = JSON.stringify(beta.split(',').map((one) => one.trim()))
  const body = splice(json, { remove: ['model', 'stream', 'anthropic_version', 'anthropic_beta'], add })
  const url = `${baseUrl}/model/${name}/${streams ? 'invoke-with-response-stream' : 'invoke'}`
  return { ...call, url, headers: streams ? { ...headers, accept: AWS_STREAM } : headers, body }
}

const AWS_STREAM = 'application/vnd.amazon.eventstream'

export function isAwsStream(headers: Readonly<Record<string, string>>): boolean {
  return headers['content-type']?.toLowerCase().startsWith(AWS_STREAM) === true
}

/** What Bedrock reports within a stream, in the format's words. */
const ERROR_TYPES: Readonly<Record<string, string>> = {
  throttlingException: 'rate_limit_error',
  serviceUnavailableException: 'overloaded_error',
  validationException: 'invalid_request_error',
  modelTimeoutException: 'timeout_error',
}
const METRICS = 'amazon-bedrock-invocationMetrics'

/** The frames of AWS as server-sent events of the format. */
class Unframed {
  private readonly frames = new EventStreamDecoder()
  private isCounted = false

  push(chunk: Buffer): Buffer {
    return Buffer.from(
      this.frames
        .push(chunk)
        .map((message) => this.eventOf(message))
        .join(''),
    )
  }

  end(): void {
    this.frames.end()
  }

  private eventOf({ headers, payload }: EventMessage): string {
    const sent = jsonIn(payload.toString() || '{}')
    if (sent === undefined) throw garbled('a message is not JSON')
    const value = objectOf(sent)
    if (headers[':message-type'] !== 'event') {
      const type = ERROR_TYPES[headers[':exception-type'] ?? ''] ?? 'api_error'
      const message = text(value.message) ?? headers[':error-message'] ?? 'The stream was broken off.'
      return encodeJson({ type: 'error', error: { type, message } }, 'error')
    }
    const inner = jsonIn(Buffer.from(text(value.bytes) ?? '', 'base64').toString())
    // Frames that are not chunks are left out.
    if (headers[':event-type'] !== 'chunk') return ''
    if (inner === undefined) throw garbled('a chunk is not JSON')
    const { [METRICS]: metrics, ...event } = objectOf(inner)
    const type = text(event.type) ?? ''
    if (!/^[a-z_]{1,60}$/.test(type)) throw garbled('a chunk has no type')
    if (type === 'message_delta') this.isCounted = isObject(event.usage)
    const counted = type === 'message_stop' && !this.isCounted && isObject(metrics) ? countedBy(metrics) : ''
    return counted + encodeJson(event, type)
  }
}

/** Bedrock reports usage at the end of every call, even if the model did not. */
function countedBy(metrics: Json): string {
  const usage = {
    input_tokens: metrics.inputTokenCount ?? 0,
    output_tokens: metrics.outputTokenCount ?? 0,
    cache_read_input_tokens: metrics.cacheReadInputTokenCount ?? 0,
    cache_creation_input_tokens: metrics.cacheWriteInputTokenCount ?? 0,
  }
  return encodeJson({ type: 'message_delta', delta: {}, usage }, 'message_delta')
}

/** A whole stream that has arrived in frames, as server-sent events. */
export function unframed(body: Buffer): Buffer {
  const frames = new Unframed()
  const events = frames.push(body)
  frames.end()
  return events
}

/** Takes the frames off before the format's own relay reads the events. */
export class UnframingRelay extends OuterRelay {
  private readonly frames = new Unframed()

  push(chunk: Buffer): Buffer | string | undefined {
    const events = this.frames.push(chunk)
    return events.length === 0 ? undefined : this.inner.push(events)
  }

  end(): Buffer | string | undefined {
    this.frames.end()
    return this.inner.end()
  }
}
