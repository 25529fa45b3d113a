// The official client in front of a gateway, in both eras of the protocol.
import { Client, type ElicitResult, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

/** The newest revision, in which every request stands for itself; and the ones before, which begin with a handshake. */
export const ERAS = ['modern', 'legacy'] as const
export type Era = (typeof ERAS)[number]

export async function connect(
  url: string,
  key: string,
  {
    era = 'modern',
    path = '/mcp',
    name = 'tests',
    elicit,
  }: { era?: Era; path?: string; name?: string; elicit?: (message: string) => ElicitResult } = {},
): Promise<Client> {
  const client = new Client(
    { name, version: '1.0.0' },
    {
      versionNegotiation: { mode: era === 'legacy' ? 'legacy' : { pin: '2026-07-28' } },
      capabilities: elicit ? { elicitation: {} } : {},
    },
  )
  if (elicit) client.setRequestHandler('elicitation/create', ({ params }) => elicit(params.message))
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url + path), {
      requestInit: { headers: { authorization: `Bearer ${key}` } },
    }),
  )
  return client
}
