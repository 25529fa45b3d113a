// Reads recorded HTTP exchanges in the forms that test libraries write: VCR (Ruby, Python), httpmock, HAR; YAML or
// JSON, also compressed.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib'
import { parseAllDocuments } from 'yaml'

/** Ruby writes `!binary`, where the standard has `!!binary`. */
const BINARY = { tag: '!binary', resolve: (coded: string) => Buffer.from(coded, 'base64') }

type Json = Record<string, any>

export interface Recorded {
  readonly file: string
  /** The vendor's host, or the folder of a recording that does not name one. */
  readonly host: string
  readonly path: string
  readonly sent: Buffer
  readonly status: number
  readonly type: string
  readonly answer: Buffer
}

const ENDINGS = '**/*.{yaml,yml,json,har,yaml.gz,yml.gz}'

export function* readCassettes(folder: string): Generator<Recorded> {
  for (const file of globSync(ENDINGS, { cwd: folder }).sort()) {
    const bytes = readFileSync(join(folder, file))
    const text = (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
    for (const document of documentsOf(file, text)) for (const one of exchangesOf(document)) yield* read(file, one)
  }
}

function documentsOf(file: string, text: string): Json[] {
  if (/\.(?:json|har)$/.test(file)) return [JSON.parse(text) as Json]
  const documents = parseAllDocuments(text, { customTags: [BINARY, 'binary'], logLevel: 'silent', strict: false })
  return (Array.isArray(documents) ? documents : []).map((document) => document.toJS({ maxAliasCount: -1 }) as Json)
}

/** The pairs of request and response of a document. */
function exchangesOf(document: Json | null): { request: Json; response: Json }[] {
  if (document?.when) return [{ request: document.when, response: document.then }]
  if (Array.isArray(document?.requests))
    return document.requests.map((request: Json, i: number) => ({ request, response: document.responses[i] }))
  const pairs = document?.interactions ?? document?.http_interactions ?? document?.log?.entries
  return Array.isArray(pairs) ? pairs : []
}

function* read(file: string, { request, response }: { request: Json; response: Json }): Generator<Recorded> {
  if (!request?.method || !response || !(request.uri ?? request.url ?? request.path)) return
  // Some recorders put placeholders in angle brackets into addresses.
  const address = String(request.uri ?? request.url ?? request.path).replaceAll(/[<>]/g, '')
  const url = new URL(address, `http://${file.split('/').at(-3)}`)
  const headers = headersOf(response.headers ?? response.header)
  yield {
    file,
    host: url.hostname,
    path: url.pathname,
    sent: bodyOf(request.parsed_body, request.postData ?? request.body),
    status: Number(response.status?.code ?? response.status_code ?? response.status ?? 200),
    type: headers['content-type'] ?? '',
    answer: unpacked(bodyOf(response.parsed_body, response.content ?? response.body), headers),
  }
}

function headersOf(headers: unknown): Record<string, string> {
  const pairs = Array.isArray(headers)
    ? headers.map(({ name, value }: Json) => [name, value])
    : Object.entries((headers ?? {}) as Json)
  return Object.fromEntries(pairs.map(([name, value]) => [String(name).toLowerCase(), String([value].flat()[0])]))
}

function bodyOf(parsed: unknown, body: unknown): Buffer {
  if (parsed !== null && parsed !== undefined) return Buffer.from(JSON.stringify(parsed))
  if (body === null || body === undefined) return Buffer.alloc(0)
  if (body instanceof Uint8Array) return Buffer.from(body)
  if (typeof body === 'string') return Buffer.from(body)
  const { string, text, base64_string: coded, encoding } = body as Json
  if (typeof coded === 'string') return Buffer.from(coded, 'base64')
  if (string !== undefined) return bodyOf(undefined, string)
  if (text !== undefined) return Buffer.from(text, encoding === 'base64' ? 'base64' : 'utf8')
  return Buffer.from(JSON.stringify(body))
}

function unpacked(body: Buffer, { 'content-encoding': encoding }: Record<string, string>): Buffer {
  const unpack = { gzip: gunzipSync, br: brotliDecompressSync, deflate: inflateSync }[encoding ?? '']
  try {
    return unpack ? unpack(body) : body[0] === 0x1f && body[1] === 0x8b ? gunzipSync(body) : body
  } catch {
    return body // Many recorders unpack the body and keep the header.
  }
}
