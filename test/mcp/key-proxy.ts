// Stands between a program that cannot send a key and the gateway, and changes nothing but that.
import { request } from 'node:http'
import { type Listening, listen } from '../started.ts'

export function startKeyProxy(gateway: string, key: string): Promise<Listening> {
  const { hostname, port } = new URL(gateway)
  return listen((incoming, outgoing) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${key}` }
    const onward = request({ hostname, port, path: incoming.url, method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    onward.on('error', () => outgoing.destroy())
    outgoing.on('close', () => onward.destroy())
    incoming.pipe(onward)
  })
}
