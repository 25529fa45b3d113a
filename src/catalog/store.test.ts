import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { before, test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { started } from '../../test/started.ts'
import { type Audit, type By, createAudit } from '../database/audit.ts'
import { createChanges } from '../database/changes.ts'
import { realWorld as world } from '../kernel/world.ts'
import shipped from './default.json' with { type: 'json' }
import { type CatalogStore, openCatalog } from './store.ts'

const BY: By = { actor: 'tester', ip: null, requestId: null }
let audit: Audit

const fresh = started(freshDatabase)
const database = started(() => fresh.open())
before(async () => {
  audit = createAudit({ database, world })
})

const open = (written: Pick<Audit, 'write'> = audit): Promise<CatalogStore> =>
  openCatalog({ database, changes: createChanges(database, world), audit: written, initial: shipped })

const named = (name: string) => {
  const document = structuredClone(shipped)
  document.models['alpha-5.4'].name = name
  return document
}

test('several processes that start at once on an empty database store its first version once', async () => {
  const stores = await Promise.all([open(), open(), open()])
  assert.deepEqual(
    stores.map((store) => store.current.version),
    [1, 1, 1],
  )
})

test('what is in force already makes no new version and no audit entry', async () => {
  const store = await open()
  const before = store.current.version
  assert.deepEqual(await store.apply(structuredClone(shipped), BY, 'again'), { version: before, changes: [] })
  assert.equal((await store.versions()).length, before)
  assert.equal((await audit.list({ limit: 10 })).items.length, 0)
})

test('a change and its audit entry are made together or not at all', async () => {
  const failing = await open({ write: () => Promise.reject(new Error('no room')) })
  const { version } = failing.current
  await assert.rejects(failing.apply(named('Never'), BY, ''), /no room/)
  await assert.rejects(failing.change('alpha-5.4', { enabled: false }, BY), /no room/)
  const store = await open()
  assert.equal(store.current.version, version)
  const applied = await store.apply(named('Renamed'), BY, 'a note')
  assert.equal(applied.version, version + 1)
  const [entry] = (await audit.list({ limit: 1 })).items
  assert.equal(entry?.object, `catalog/${applied.version}`)
  assert.deepEqual(entry?.detail, {
    changes: ['alpha-5.4: name changes from "Alpha 5.4" to "Renamed".'],
    digest: createHash('sha256')
      .update(JSON.stringify(named('Renamed')))
      .digest('hex'),
  })
})

test('a version goes live after the credentials that were stored with it, and not without them', async () => {
  const changes = createChanges(database, world)
  const store = await openCatalog({ database, changes, audit, initial: shipped })
  const { version } = store.current
  const seen: number[] = []
  let isBroken = true
  changes.watch('credentials', () => {
    seen.push(store.current.version)
    if (isBroken) throw new Error('not read')
  })
  await assert.rejects(store.apply(named('Moved'), BY, ''), /not read/)
  assert.equal(store.current.version, version)
  isBroken = false
  await changes.notice('catalog')
  assert.deepEqual([seen, store.current.version], [[version, version], version + 1])
})

test('the check refuses exactly what applying refuses', async () => {
  const store = await open()
  const broken = [
    { ...named('x'), endpoints: undefined },
    { ...named('x'), families: { alpha: { traits: { tokenField: 'max_tokens' } } } },
    { ...named('x'), vendors: {} },
    null,
    [],
    'catalogue',
  ]
  for (const input of broken) {
    const { problems } = store.check(input)
    assert.notEqual(problems.length, 0)
    await assert.rejects(store.apply(input, BY, ''), { message: `The catalog is not valid. ${problems.join('; ')}` })
  }
  assert.deepEqual(store.check(named('Fine')).problems, [])
})

test('changes that several processes make at once are made one after the other, and none is lost', async () => {
  const stores = await Promise.all([open(), open(), open()])
  const uids = ['alpha-5.4', 'alpha-5.5', 'beta-opus-5']
  await Promise.all(stores.map((store, i) => store.change(uids[i]!, { enabled: false }, BY)))
  const [newest] = await stores[0]!.versions()
  assert.match(newest?.note ?? '', /: switched off$/)
  const { document } = (await open()).current
  assert.deepEqual(
    uids.map((uid) => document.models[uid]?.enabled),
    [false, false, false],
  )
})
