// Node 18 has the web's cryptography, but not as a global.
const NODE_CRYPTO: string = 'node:crypto'

export async function webCrypto(): Promise<Crypto> {
  if (globalThis.crypto) return globalThis.crypto
  // A name that is not written out, so that bundlers for browsers leave it alone.
  const { webcrypto } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ NODE_CRYPTO)) as {
    webcrypto: Crypto
  }
  return webcrypto
}

export const uuid = async (): Promise<string> => {
  const bytes = (await webCrypto()).getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
