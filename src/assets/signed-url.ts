// Addresses that anyone who has them can open, until they expire, and that nobody can make.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { readAssetName } from './store.ts'

export interface AssetSigner {
  /** The absolute address of an asset, good until the asset expires. */
  urlOf(name: string): string
  /** Whether this gateway made the address. Says nothing about its expiry. */
  verify(name: string, expires: string | undefined, signature: string | undefined): boolean
}

export function createAssetSigner(options: { key: Buffer; publicUrl: () => string }): AssetSigner {
  function sign(name: string, expires: string): string {
    return createHmac('sha256', options.key).update(`asset\n${name}\n${expires}`).digest('base64url')
  }

  return {
    urlOf(name) {
      const facts = readAssetName(name)
      if (!facts) throw new Error('not the name of an asset')
      const expires = String(Math.floor(facts.expiresMs / 1000))
      return `${options.publicUrl()}/assets/${name}?exp=${expires}&sig=${sign(name, expires)}`
    },
    verify(name, expires, signature) {
      if (expires === undefined || signature === undefined) return false
      const given = Buffer.from(signature)
      const right = Buffer.from(sign(name, expires))
      return given.length === right.length && timingSafeEqual(given, right)
    },
  }
}
