// Recordings and the forms that carry them, for the tests of sound.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { wavFile } from '../sandbox/wav.ts'
import type { TestGateway } from './gateway.ts'

export const TRANSCRIBE = 'alpha-transcribe-1'
export const SPEECH = 'alpha-speech-1'

/** A vendor whose answer a test says. */
export async function startSoundVendor() {
  const server = createServer((incoming, response) => {
    const { type, body } = vendor.answer
    incoming.resume().on('end', () => response.writeHead(200, { 'content-type': type }).end(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const vendor = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answer: { type: 'application/json', body: '{}' },
    close: () => server.close(),
  }
  return vendor
}

/** Silence of so many seconds. */
export const wav = (seconds: number): Buffer => wavFile(Buffer.alloc(Math.round(seconds * 16_000)))

export function form(fields: Record<string, string>, file?: Buffer, name = 'a.wav'): FormData {
  const made = new FormData()
  // Where SDKs put it: before the model.
  if (file) made.append('file', new Blob([new Uint8Array(file)]), name)
  for (const [field, value] of Object.entries(fields)) made.append(field, value)
  return made
}

interface UsageRow {
  charged: bigint
  held: bigint
  estimated: boolean
  endpoint: string
  status: number
  lines: [string, number, string][]
}

export function soundOf(gateway: () => TestGateway) {
  return {
    post(key: string, body: RequestInit['body'], headers: Record<string, string> = {}): Promise<Response> {
      const init = { method: 'POST', headers: { authorization: `Bearer ${key}`, ...headers }, body: body ?? null }
      return fetch(`${gateway().url}/v1/audio/transcriptions`, init)
    },

    /** The newest first. */
    async rows(account: string): Promise<UsageRow[]> {
      await gateway().settled()
      const text =
        'select charged, held, estimated, endpoint, status, lines from usage where account_id = $1 order by id desc'
      return gateway().gateway.database.query<UsageRow>({ text }, [account])
    },
  }
}
