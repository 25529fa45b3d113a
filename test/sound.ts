// Recordings and the forms that carry them, for the tests of sound.
import { wavFile } from '../sandbox/wav.ts'
import type { TestGateway } from './gateway.ts'
import { listen } from './started.ts'

export const TRANSCRIBE = 'alpha-transcribe-1'
export const SPEECH = 'alpha-speech-1'

/** A vendor whose answer a test says. */
export async function startSoundVendor() {
  const vendor = { answer: { type: 'application/json', body: '{}' } }
  const server = await listen((incoming, response) => {
    const { type, body } = vendor.answer
    incoming.resume().on('end', () => response.writeHead(200, { 'content-type': type }).end(body))
  })
  return Object.assign(vendor, server)
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

export function soundOf(gateway: () => TestGateway) {
  return {
    post(key: string, body: RequestInit['body'], headers: Record<string, string> = {}): Promise<Response> {
      const init = { method: 'POST', headers: { authorization: `Bearer ${key}`, ...headers }, body: body ?? null }
      return fetch(`${gateway().url}/v1/audio/transcriptions`, init)
    },

    /** The newest first. */
    rows: async (account: string) => (await gateway().calls(account)).reverse(),
  }
}
