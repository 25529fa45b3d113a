// TXT records of the DNS.
import { Resolver } from 'node:dns/promises'
import { Fault } from '../../kernel/fault.ts'

export type ReadTxt = (name: string) => Promise<readonly string[]>

/** `servers`: instead of those of the machine. */
export function createReadTxt(servers: readonly string[]): ReadTxt {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 })
  if (servers.length > 0) resolver.setServers(servers)
  return async (name) => {
    const records = await resolver.resolveTxt(name).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOTFOUND' || error.code === 'ENODATA') return []
      throw new Fault('unavailable', { message: 'The name servers did not answer. Try again.', cause: error })
    })
    return records.map((parts) => parts.join(''))
  }
}
