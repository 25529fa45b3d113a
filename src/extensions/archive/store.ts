// The archive of the ledger: files that stay for ever, each with the name that the ledger knows it by.
import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import { Fault } from '../../kernel/fault.ts'
import type { World } from '../../kernel/world.ts'
import { type S3Send, tagsOf } from '../s3/s3.ts'
import type { ArchiveStore } from './archive.ts'

const FILE_BYTES_MAX = 256 * 1_048_576
const SAID_BYTES_MAX = 4_096

/** Written beside its place, synced, and renamed into it. */
export function createDiskArchive({ world, directory }: { world: World; directory: string }): ArchiveStore {
  const root = resolve(directory)
  const pathOf = (name: string) => {
    const path = resolve(root, name)
    if (!path.startsWith(root + sep)) throw new Error('not a name of the archive')
    return path
  }
  return {
    place: root,
    async put(name, bytes) {
      const path = pathOf(name)
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      const unfinished = join(dirname(path), `.${world.bytes(8).toString('hex')}`)
      const file = await open(unfinished, 'wx', 0o600)
      try {
        await file.writeFile(bytes)
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(unfinished, path)
      // The file is durable only when the directories above it are synced too.
      for (let above = dirname(path); ; above = dirname(above)) {
        const parent = await open(above, 'r')
        await parent.sync().finally(() => parent.close())
        if (above === root) return
      }
    },
    get: (name) =>
      readFile(pathOf(name)).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return undefined
        throw error
      }),
  }
}

/** Its errors are sentences for the operator, to whom the archive says why a month stays. */
export function createS3Archive({ send, bucket }: { send: S3Send; bucket: string }): ArchiveStore {
  const place = `the bucket ${bucket}`
  const ask: S3Send = (...request) =>
    send(...request).catch((cause: unknown) => {
      const why = cause instanceof Fault ? cause.details.internal?.why : undefined
      throw new Error(`The store of ${place} could not be reached${why ? ` (${why})` : ''}.`, { cause })
    })
  const codeIn = (said: Buffer) => tagsOf(String(said.subarray(0, SAID_BYTES_MAX)), 'Code')[0] ?? ''
  const refused = (status: number, said: Buffer) =>
    new Error(`The store of ${place} answered ${`${status} ${codeIn(said)}`.trim()}.`)
  return {
    place,
    async put(name, bytes) {
      const type = name.endsWith('.json') ? 'application/json' : 'application/vnd.apache.parquet'
      const reply = await ask('PUT', name, { headers: { 'content-type': type }, body: [bytes] })
      const said = await reply.read(FILE_BYTES_MAX)
      if (reply.status >= 300) throw refused(reply.status, said)
    },
    async get(name) {
      const reply = await ask('GET', name)
      const bytes = await reply.read(FILE_BYTES_MAX)
      if (reply.status === 200) return bytes
      // A bucket that is gone is not an archive without this file.
      if (reply.status === 404 && codeIn(bytes) !== 'NoSuchBucket') return undefined
      throw refused(reply.status, bytes)
    },
  }
}
