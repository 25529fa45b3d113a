// A real name server on this machine that answers with the TXT records that a test sets.
import { createSocket } from 'node:dgram'

export interface NameServer {
  /** `host:port` */
  readonly address: string
  /** By name. */
  readonly records: Map<string, string>
  close(): void
}

export async function startNameServer(): Promise<NameServer> {
  const records = new Map<string, string>()
  const names = createSocket('udp4')
  names.on('message', (asked, { port, address }) => {
    const end = asked.indexOf(0, 12) + 5
    const labels: string[] = []
    for (let at = 12; asked[at]; at += asked[at]! + 1)
      labels.push(asked.toString('latin1', at + 1, at + 1 + asked[at]!))
    const text = records.get(labels.join('.').toLowerCase())
    const head = Buffer.from(asked.subarray(0, 12))
    head.writeUInt16BE(text === undefined ? 0x8183 : 0x8180, 2)
    for (const [at, count] of [
      [4, 1],
      [6, text === undefined ? 0 : 1],
      [8, 0],
      [10, 0],
    ] as const)
      head.writeUInt16BE(count, at)
    const value = Buffer.from(text ?? '')
    const answer = Buffer.from([0xc0, 0x0c, 0, 16, 0, 1, 0, 0, 0, 0, 0, value.length + 1, value.length])
    names.send(
      Buffer.concat([head, asked.subarray(12, end), ...(text === undefined ? [] : [answer, value])]),
      port,
      address,
    )
  })
  await new Promise<void>((resolve) => names.bind(0, '127.0.0.1', resolve))
  return { address: `127.0.0.1:${names.address().port}`, records, close: () => void names.close() }
}
