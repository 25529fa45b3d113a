// The commands `backup` and `restore`. A backup may be taken while the gateway runs; a restore needs an empty database.
import { createReadStream, createWriteStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { storedCatalogs } from '../../catalog/store.ts'
import type { Config } from '../../config.ts'
import { noteBackup } from '../../database/health.ts'
import { usageStoredSinceMs } from '../../ledger/retention.ts'
import { type Say, type Store, withStores } from '../postgres/upgrade.ts'
import { verifyLedger } from '../verify/verify.ts'
import { readBackup, writeBackup } from './backup.ts'

export async function backup(config: Config, file: string, say: Say, stop: AbortSignal): Promise<void> {
  await withStores(config, stop, async (stores) => {
    const unfinished = `${file}.part`
    try {
      const facts = await writeBackup(stores, createWriteStream(unfinished, { mode: 0o600, signal: stop }))
      const handle = await open(unfinished, 'r+')
      await handle.sync()
      await handle.close()
      await rename(unfinished, file)
      for (const { database } of stores) await noteBackup(database, facts.at)
      const rows = Object.values(facts.rows).reduce((sum, count) => sum + count, 0)
      const tables = `${Object.keys(facts.rows).length} tables${stores.length > 1 ? ` of ${namesOf(stores)}` : ''}`
      say(`Wrote ${rows} rows of ${tables}, as of ${facts.at}, to ${file}.`)
      say(
        config.TOLLGATE_SECRET
          ? 'Keep TOLLGATE_SECRET with it: without the secret no key and no stored credential can be read.'
          : `Keep ${join(config.dataDirectory, 'secret')} with it: without the secret no key and no stored credential can be read. Files under assets/ are not part of it.`,
      )
    } catch (error) {
      await rm(unfinished, { force: true })
      throw error
    }
  })
}

export async function restore(config: Config, file: string, say: Say, stop: AbortSignal): Promise<void> {
  await withStores(config, stop, async (stores) => {
    const facts = await readBackup(stores, createReadStream(file, { signal: stop }))
    const rows = Object.values(facts.rows).reduce((sum, count) => sum + count, 0)
    const where = stores.length > 1 ? ` into ${namesOf(stores)}` : ''
    say(`Restored ${rows} rows${where}, as of ${facts.at}. Verifying the ledger …`)
    stop.throwIfAborted()
    const stopped = new Promise<never>((_, reject) =>
      stop.addEventListener('abort', () => reject(stop.reason as Error)),
    )
    for (const { name, database } of stores) {
      // What this machine is told to keep may differ from what was kept where the backup was taken.
      const usageSinceMs = await usageStoredSinceMs(database)
      const verified = await Promise.race([verifyLedger(database, storedCatalogs(database), { usageSinceMs }), stopped])
      if (!verified.ok)
        throw new Error(
          `The restored ledger${stores.length > 1 ? ` ${name}` : ''} does not add up: ${verified.problems.join('; ')}`,
        )
    }
    say(stores.length > 1 ? 'All ledgers add up.' : 'The ledger adds up.')
  })
}

const namesOf = (stores: readonly Store[]) => stores.map(({ name }) => name).join(', ')
