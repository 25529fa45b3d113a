// The official client in front of a gateway, in both eras of the protocol.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

/** The newest revision, in which every request stands for itself; and the ones before, which begin with a handshake. */
export const ERAS = ['modern', 'legacy'] as const
export type Era = (typeof ERAS)[number]

export async function connect(
  url: string,
  key: string,
  { era = 'modern', path = '/mcp', name = 'tests' }: { era?: Era; path?: string; name?: string } = {},
): Promise<Client> {
  const client = new Client(
    { name, version: '1.0.0' },
    { versionNegotiation: { mode: era === 'legacy' ? 'legacy' : { pin: '2026-07-28' } } },
  )
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url + path), {
      requestInit: { headers: { authorization: `Bearer ${key}` } },
    }),
  )
  return client
}
