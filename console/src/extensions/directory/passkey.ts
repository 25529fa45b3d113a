// Passkeys, as the browser has them. The server makes the options and reads the answers; both travel as JSON.
import type { PasskeyOptions } from '../../wire.ts'

export const hasPasskeys = (): boolean => 'PublicKeyCredential' in window

export async function createPasskey({ options }: PasskeyOptions): Promise<unknown> {
  // The server made them in this form.
  const json = options as unknown as PublicKeyCredentialCreationOptionsJSON
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(json)
  return answerOf(() => navigator.credentials.create({ publicKey }))
}

export async function usePasskey({ options }: PasskeyOptions): Promise<unknown> {
  // The server made them in this form.
  const json = options as unknown as PublicKeyCredentialRequestOptionsJSON
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(json)
  return answerOf(() => navigator.credentials.get({ publicKey }))
}

async function answerOf(ask: () => Promise<Credential | null>): Promise<unknown> {
  const credential = await ask().catch((error: unknown) => {
    const name = error instanceof Error ? error.name : ''
    if (name === 'InvalidStateError') throw new Error('This device has a passkey for you already.')
    throw new Error('No passkey was used. The browser’s window was closed, or this device has none for this address.')
  })
  if (!(credential instanceof PublicKeyCredential)) throw new Error('The browser gave no passkey.')
  return credential.toJSON()
}
