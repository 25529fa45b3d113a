// A browser in which somebody logged in before. It waits only for its own wrong tries, so that whoever guesses at a name from
// elsewhere keeps nobody out who is known. Its mark opens nothing: whoever steals it still has to guess, as slowly as others.
import { sameBytes, sign } from '../kernel/secret.ts'
import type { World } from '../kernel/world.ts'

export interface Browsers {
  mark(email: string): string
  /** What the browser is counted by, when its mark is ours and of this person. */
  recognise(mark: string | undefined, email: string): string | undefined
}

const ID_BYTES = 16

export function createBrowsers({ key, world }: { key: Buffer; world: World }): Browsers {
  const signatureOf = (id: string, email: string) => sign(key, `${id} ${email}`)
  return {
    mark(email) {
      const id = world.bytes(ID_BYTES).toString('base64url')
      return `${id}.${signatureOf(id, email).toString('base64url')}`
    },
    recognise(mark, email) {
      const [id = '', signature = ''] = (mark ?? '').split('.', 2)
      return sameBytes(Buffer.from(signature, 'base64url'), signatureOf(id, email)) ? id : undefined
    },
  }
}
