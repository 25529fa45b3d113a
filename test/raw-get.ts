// A GET as it stands: with any Host, and the answer's bytes not decompressed, neither of which `fetch` does.
import { get, type IncomingHttpHeaders } from 'node:http'
import { buffer } from 'node:stream/consumers'

export interface RawAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  readonly text: string
}

export function rawGet(url: string, headers: Record<string, string> = {}): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    get(url, { headers, agent: false }, (answer) => {
      const { statusCode: status = 0, headers } = answer
      buffer(answer).then((bytes) => resolve({ status, headers, bytes, text: bytes.toString() }), reject)
    }).on('error', reject)
  })
}
