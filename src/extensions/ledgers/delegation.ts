// Which ledger answers a request of operators and people: that of the account; where no account is named, all of them,
// put together, or the one that knows the id.
import { accountIdFrom } from '../../admission/accounts.ts'
import { rawQuery } from '../../api/server/server.ts'
import { SHORT_MS, sql } from '../../database/database.ts'
import { Fault } from '../../kernel/fault.ts'
import {
  type FileAnswer,
  type FileType,
  type HERE,
  type Resource,
  type ResourceCall,
  readParams,
  WithHeaders,
} from '../../operator/resource.ts'
import { zip } from '../billing/zip.ts'
import { ACROSS, type Row, type Way } from './across.ts'
import { type Cell, type Ledgers, ledgerAway } from './front.ts'
import type { Homes } from './homes.ts'

type Delegation = typeof HERE

const nameOf = ({ method, path }: Resource) => `${method} ${path}`

export function delegationOf(control: Cell, ledgers: Ledgers, homes: Homes): Delegation {
  const indexes = new WeakMap<Cell, Map<string, Resource>>()
  /** The same resource of another gateway. */
  function of(cell: Cell, entry: Resource): Resource {
    const index = indexes.get(cell) ?? new Map(cell.office.routes.resources.map((one) => [nameOf(one), one]))
    indexes.set(cell, index)
    return index.get(nameOf(entry)) ?? entry
  }

  async function ofAccount(account: string, entry: Resource): Promise<Resource> {
    const home = await homes.ofAccount(account)
    return home === null ? entry : inLedger(home, entry)
  }

  async function inLedger(name: string, entry: Resource): Promise<Resource> {
    const cell = ledgers.of(name)
    if (!cell) throw ledgerAway(name)
    await cell.app.posted()
    return of(cell, entry)
  }

  /** Control first, then each ledger; undefined: it is away. */
  const everywhere = () => [control, ...ledgers.names.map((name) => ledgers.of(name))]

  /** Of the first that knows what it is about. */
  async function whereKnown<T>(entry: Resource, ask: (one: Resource) => Promise<T>): Promise<T> {
    let unknown: unknown
    let isAway = false
    for (const cell of everywhere()) {
      if (!cell) {
        isAway = true
        continue
      }
      try {
        await cell.app.posted()
        return await ask(of(cell, entry))
      } catch (error) {
        if (!(error instanceof Fault) || error.status !== 404) throw error
        unknown = error
      }
    }
    if (isAway) throw new Fault('unavailable', { message: AWAY, retryAfterSeconds: 1 })
    throw unknown
  }

  /** Of all that answer, control first. What one refuses, all refuse. */
  async function ofAll<T>(entry: Resource, ask: (one: Resource, cell: Cell) => Promise<T> | T) {
    const asked = everywhere().map(async (cell) => {
      if (!cell) throw new Fault('unavailable')
      await cell.app.posted()
      return ask(of(cell, entry), cell)
    })
    const settled = await Promise.allSettled(asked)
    const answers: T[] = []
    const missing: string[] = []
    for (const [place, result] of settled.entries()) {
      const { [place - 1]: name } = ledgers.names
      if (result.status === 'fulfilled') answers.push(result.value)
      else if (name === undefined || (result.reason instanceof Fault && result.reason.status < 500)) throw result.reason
      else missing.push(name)
    }
    return { answers, missing }
  }

  /** A file is whole, or there is none: nobody would see what it lacks. */
  async function ofEach<T>(entry: Resource, ask: (one: Resource, cell: Cell) => Promise<T> | T): Promise<T[]> {
    const { answers, missing } = await ofAll(entry, ask)
    if (missing.length > 0) throw incomplete(missing)
    return answers
  }

  function together(entry: Resource, way: Way): Resource {
    async function read(call: ResourceCall<unknown, Row>) {
      const asked = { ...call, query: way.ask?.(call.query) ?? call.query }
      // What `resource` gave it the types of.
      const { answers, missing } = await ofAll(entry, async (one) => Object(await one.run(asked as never)))
      const about = { query: call.query, answer: entry.answer, names: ledgers.names, missing }
      return { data: way.merge(answers, about), missing }
    }
    async function readWhole(call: ResourceCall<unknown, Row>): Promise<Row> {
      const { data, missing } = await read(call)
      if (missing.length > 0) throw incomplete(missing)
      return data
    }
    async function* tables(call: never): AsyncGenerator<string> {
      const parts = await ofEach(entry, (one) => one.csv?.(call))
      for (const [place, part] of parts.entries()) {
        // The headings once.
        if (place > 0) await part?.next()
        if (part) yield* part
      }
    }
    async function* csvOf(call: ResourceCall<unknown, Row>): AsyncGenerator<string> {
      // Before the first line, after which nobody can be told: what is asked for is checked, and everybody is there.
      await ofEach(entry, async (one, { database }) => {
        one.csv?.(call as never) // What `resource` gave it the types of.
        await database.query(ANSWERS)
      })
      yield* way.csv?.((query) => readWhole({ ...call, query }), call, entry.answer) ?? tables(call as never) // As above.
    }
    const fileOf = (type: FileType) => async (call: never) => {
      const parts = await ofEach(entry, async (one, { database }) => {
        await database.query(ANSWERS)
        return one.files?.[type]?.(call)
      })
      const [first] = parts
      if (!first) throw new Fault('not_found')
      return { name: first.name, body: zip(filesOf(parts.flatMap((part) => part?.files ?? []))) }
    }
    const types = Object.keys(entry.files ?? {}) as FileType[] // By its type.
    return {
      ...entry,
      async run(call) {
        const { data, missing } = await read(call)
        return new WithHeaders(data, missing.length > 0 ? { 'x-tollgate-missing': missing.join(' ') } : {}, missing)
      },
      ...(entry.csv ? { csv: csvOf } : {}),
      ...(entry.files ? { files: Object.fromEntries(types.map((type) => [type, fileOf(type)])) } : {}),
    }
  }

  const newIn = (entry: Resource) => async (call: ResourceCall<unknown, unknown, { readonly region?: string }>) => {
    const { idempotencyKey: key, body } = call
    // Repeated, it is where it was made.
    const made = key === undefined ? null : await homes.ofAccount(accountIdFrom(key))
    const name = made ?? (await ledgers.roomiest(body.region))
    const one = name === null ? entry : await inLedger(name, entry)
    return one.run(call as never) // What `resource` gave it the types of.
  }

  const changing = (entry: Resource) => async (call: never) => {
    const answer = await entry.run(call)
    await ledgers.changed()
    return answer
  }

  return {
    async at(entry, request) {
      if (entry.path.startsWith('/accounts/{id}')) return ofAccount(request.params.id ?? '', entry)
      if (entry.account)
        return whereKnown(entry, async (one) => {
          // `resource` gave it the types of its path.
          await one.account?.(readParams(one, request) as never)
          return one
        })
      // It takes what its own answers are.
      const way = (entry.across as Way | undefined) ?? ACROSS[nameOf(entry)]
      if (way === undefined) return entry.method === 'GET' ? entry : { ...entry, run: changing(entry) }
      const account = new URLSearchParams(rawQuery(request)).get('account')
      if (account !== null) return ofAccount(account, entry)
      if (way === 'new') return { ...entry, run: newIn(entry) }
      if (way === 'one') return { ...entry, run: (call: never) => whereKnown(entry, async (one) => one.run(call)) }
      return together(entry, way)
    },
  }
}

/** Of two with the same name, the second gets a number: on Windows case does not distinguish files. */
async function* filesOf(archives: readonly NonNullable<FileAnswer['files']>[]) {
  const names = new Map<string, number>()
  for (const archive of archives)
    for await (const { name, body } of archive) {
      const count = (names.get(name.toLowerCase()) ?? 0) + 1
      names.set(name.toLowerCase(), count)
      yield { name: count === 1 ? name : name.replace(/(\.\w+)$/, ` (${count})$1`), body }
    }
}

const ANSWERS = sql('ledger_answers', SHORT_MS)`select 1`
const incomplete = (missing: readonly string[]) =>
  new Fault('unavailable', {
    message: `A file is whole or there is none, and these ledgers do not answer right now: ${missing.join(', ')}.`,
    retryAfterSeconds: 1,
  })
const AWAY = 'One of the ledgers does not answer right now, and none of the others knows this id. Try again shortly.'
