// What programs of others send to the gateway, noted on its way.
import { createServer, type IncomingHttpHeaders, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { listen, started } from '../started.ts'

export interface Passed {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  status: number
}

/** In the order of arrival. It passes no WebSockets on, as some proxies: who asks for one goes on over HTTP. */
export function passing(gateway: { readonly url: string }) {
  const seen: Passed[] = []
  const server = createServer(async (incoming, response) => {
    const { url: path = '', method, headers } = incoming
    const one: Passed = { path, headers, body: await text(incoming), status: 0 }
    seen.push(one)
    const { host: _, ...sent } = headers
    const onward = request(gateway.url + path, { method, headers: sent }, (answer) => {
      one.status = answer.statusCode ?? 0
      response.writeHead(one.status, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    onward.end(one.body)
  })
  server.on('upgrade', (_request, link) => {
    link.end('HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
  })
  return { seen, between: started(() => listen(server)) }
}
