// The rules of the house that a reader would otherwise have to remember.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { test } from 'node:test'
import { CASTS_FILE, castsOf, readHouse } from './house.ts'
import { none, pluck, words } from './lists.ts'

const ROOT = resolve(import.meta.dirname, '..')
const SOURCE = join(ROOT, 'src')

/**
 * A room of the core may import only from those before it, and no extension. An extension may import the core, and no
 * other extension, but what several extensions need and the core does not.
 */
const ROOMS = words(`
  kernel database meter catalog ledger reports upstream protocols assets admission identity routing telemetry jobs
  pipeline api operator process cli
`)
const EXTENSIONS = 'extensions'
/** What several extensions need and the core does not; they import no other. */
const FOR_SEVERAL = ['billing', 'connection', 'embeddings', 'logins', 'postgres', 'probes', 's3', 'verify'].map(
  (name) => `extensions/${name}`,
)
/** What stands beside the folders is put together from all of them; only what starts the program may ask for it. */
const BESIDE = ['commands.ts', 'compose.ts', 'config.ts', 'entries.ts', 'extension.ts', 'installation.ts']
const STARTERS = ['process', 'cli', 'extensions']

const LINES_MAX = 600
const FUNCTION_LINES_MAX = 70
const PARAMETERS_MAX = 4
const SQL_FUNCTION_LINES_MAX = 100
/** What nobody but a test asks for from outside, because the rest of the product reaches it another way. */
const FOR_TESTS = words(`
  src/assets/store.ts#HostedAsset src/api/assets.ts#AssetRequest src/api/assets.ts#serveAsset
  src/assets/open.ts#openDiskStore src/assets/store.ts#putAsset src/database/migrate.ts#applyFunctions
  src/database/migration-plan.ts#objectionTo src/protocols/media/openai-images/exchange.ts#ImageRelay
  src/extensions/verify/account.ts#checkLots src/identity/branding/branding.ts#contrast
  src/catalog/analytics.ts#analyticsEndpoint src/extensions/docs/reference.ts#camel
  src/extensions/docs/reference.ts#pascal src/extensions/docs/reference.ts#pythonName
  src/extensions/docs/reference.ts#snake src/catalog/traits.ts#TextTraitsGiven
  src/extensions/postgres/binaries.ts#findPackage src/extensions/guardrails/recordings.ts#CallRecording
  src/identity/password.ts#COST src/identity/totp.ts#totpAt src/jobs/engine.ts#EngineOptions src/jobs/views.ts#jobView
  src/kernel/redact.ts#patternOf src/upstream/guard.ts#IMAGE_REFUSED
  src/upstream/guard.ts#ADDRESS_REFUSED src/upstream/guard.ts#GuardOptions
`)

const house = readHouse()
const product = house.filter((file) => file.product)

const sources = readdirSync(SOURCE, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  .map((entry) => relative(SOURCE, join(entry.parentPath, entry.name)))
  .filter((path) => !path.endsWith('.test.ts'))
const textOf = (path: string) => readFileSync(join(SOURCE, path), 'utf8')
/** Comments and strings may name what code may not use. */
const codeOf = (path: string) =>
  textOf(path)
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/(^|\s)\/\/.*$/gm, '')
    .replaceAll(/'(?:[^'\\\n]|\\.)*'/g, "''")
const offenders = (pattern: RegExp, allowed: (path: string) => boolean) =>
  sources.filter((path) => !allowed(path) && pattern.test(codeOf(path)))

const roomOf = (path: string) => path.split('/')[0] ?? ''
const extensionOf = (path: string) => path.split('/').slice(0, 2).join('/')

test('a room imports only from rooms before it, and nothing imports an extension', () => {
  const wrong: string[] = []
  for (const path of sources) {
    if (!path.includes('/')) continue
    const room = roomOf(path)
    const rank = room === EXTENSIONS ? ROOMS.length : ROOMS.indexOf(room)
    assert.notEqual(rank, -1, `${room}/ has no place in the order of rooms`)
    for (const [, , from] of textOf(path).matchAll(/^import (type )?[\s\S]*?from '(\.[^']+)'/gm)) {
      const target = relative(SOURCE, resolve(SOURCE, dirname(path), from ?? ''))
      if (target === '../package.json') continue
      if (room === 'process' && target.startsWith('../sandbox/')) continue
      if (STARTERS.includes(room) && BESIDE.includes(target)) continue
      const targetRank = ROOMS.indexOf(roomOf(target))
      const isOwn = room === EXTENSIONS && [extensionOf(path), ...FOR_SEVERAL].includes(extensionOf(target))
      if (!isOwn && (targetRank === -1 || targetRank > rank)) wrong.push(`${path} imports ${target}`)
    }
  }
  assert.deepEqual(wrong, [])
})

test('the simulated vendors know nothing of the gateway but its kernel, how it measures sound, and of data what its entries say', () => {
  const folder = join(ROOT, 'sandbox')
  const wrong = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
    .filter((path) =>
      /from '(?:\.\.\/)+src\/(?!kernel\/|extensions\/audio\/audio-file\.ts|catalog\/(?:analytics|endpoint)\.ts)/.test(
        readFileSync(join(folder, path), 'utf8'),
      ),
    )
  assert.deepEqual(wrong, [])
})

test('the console takes types from the server, and of values only the table of kinds, what is simulated, prices and changes in words, examples, a balance and a statement in words, and the table of roles', () => {
  const folder = join(ROOT, 'console', 'src')
  const wrong = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .filter((path) =>
      /^(?:import|export) (?!type )[^']*from '(?:\.\.\/)+src\/(?!meter\/(?:kind|price-words)\.ts'|catalog\/(?:change-sentences|simulated)\.ts'|extensions\/(?:\w+\/review|docs\/(?:snippet|synonyms)|finance\/statements\/statement-lines)\.ts'|reports\/balance-sentence\.ts'|identity\/roles\.ts')/m.test(
        readFileSync(join(folder, path), 'utf8'),
      ),
    )
  assert.deepEqual(wrong, [])
})

test('a page of an extension stands in the menu of the console only where the extension is switched on', () => {
  const text = (file: string) => readFileSync(join(ROOT, 'console', 'src', file), 'utf8')
  const routes = [...text('app.tsx').matchAll(/'(\/[^']*)'[,:]\s*page\(\(\) => import\('\.\/extensions\/(\w+)\//g)]
  const extensionOf = new Map(routes.map(([, path = '', name]) => [path, name]))
  const pages = [...text('navigation.ts').matchAll(/\{[^{}]*\bto: '([^']*)'[^{}]*\}/g)]
  const wrong = pages.flatMap(([page, to = '']) => {
    const path = to.startsWith('/operator') ? to : `/a/:account${to}`
    const wanted = extensionOf.get(path) ?? extensionOf.get(path.replace(/\/[^/]*$/, '/:tab'))
    const said = /\bof: '(\w+)'/.exec(page)?.[1]
    return wanted === undefined || said === wanted ? [] : [`${to}: ${said}, not ${wanted}`]
  })
  assert.ok(extensionOf.size > 30 && pages.length > 40)
  assert.deepEqual(wrong, [])
})

test('the insides of Node are known to one file, whose tests hold them against the lockfile', () => {
  const inside = /destroySoon|\.prototype\.\w+\.call|listenerCount/
  none(sources, (path) => path !== join('upstream', 'internals.ts') && inside.test(textOf(path)))
})

/** Files that hold programs for others to run, as text. */
const isExample = (path: string) => /^extensions\/docs\/(?:snippet|examples)\.ts$/.test(path)

test('the environment is read in config.ts only', () => {
  assert.deepEqual(
    offenders(/\bprocess\.env\b/, (path) => path === 'config.ts' || isExample(path)),
    [],
  )
})

test('HTTP clients live in upstream/ only', () => {
  const clients = /(?<![.\w])fetch\(|\bhttps?\.(request|get)\(|from ''\s*$/
  none(
    sources,
    (path) =>
      !path.startsWith('upstream/') &&
      !isExample(path) &&
      (clients.test(codeOf(path)) || /from '(undici|axios|got|node-fetch)'/.test(textOf(path))),
  )
})

test('a caller is written to in one way: by api/server/caller.ts, through the response', () => {
  // Node's response holds back what it is given until the end of the turn. What is written to its socket meanwhile
  // overtakes that.
  const past = /\bsocket\b\S*\.(?:write|cork|uncork)\(|\b_(?:send|writeRaw)\(/
  assert.deepEqual(
    offenders(past, (path) => path.startsWith('upstream/')),
    [],
  )
  const writes = /\b(?:response|res|raw)\??\.(?:write|pipe)\(|\.pipe(?:To)?\(\s*(?:response|res|reply)\b/g
  const found = sources.flatMap((path) => [...codeOf(path).matchAll(writes)].map(() => path))
  assert.deepEqual(found, ['api/server/caller.ts'])
})

test('clocks and randomness come from kernel/world.ts only', () => {
  const clocks =
    /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\bperformance\.now\(|\brandomBytes\(|\brandomUUID\(|\bgetRandomValues\(/
  assert.deepEqual(
    offenders(clocks, (path) => path === 'kernel/world.ts'),
    [],
  )
})

test('SQL is never built from input', () => {
  // Constants may be put together. Only these make statements from names: of months, of our tables, of what migrations
  // say, and of the control database.
  const named = words(`
    ledger/retention.ts extensions/archive/archive.ts extensions/backup/backup.ts database/migrate.ts
    database/backfill.ts extensions/postgres/mount.ts
  `)
  const built = /`[^`]*\b(select|insert|update|delete|drop|create)\b[^`]*\$\{(?![^}]*\b[A-Z][A-Z_]+\b)/
  assert.deepEqual(
    offenders(built, (path) => isExample(path) || named.includes(path)),
    [],
  )
})

test('paths name things', () => {
  const empty = /(^|[/.-])(utils?|helpers?|services?|managers?|common|misc|lib|handlers?)([/.-]|$)/
  none(sources, (path) => empty.test(path))
})

test('a comment has at most 120 characters in a line, and no literal is spread to save some', () => {
  const [isComment, isSpread] = [/^\s*(?:\/\/|\/?\*)/, /\.\.\.\{|^\s*\.\.\.\[.*\],?$/]
  const bad = house.flatMap(({ path }) =>
    readFileSync(join(ROOT, path), 'utf8')
      .split('\n')
      .flatMap((line, at) =>
        (isComment.test(line) && line.length > 120) || isSpread.test(line) ? [`${path}:${at + 1}`] : [],
      ),
  )
  assert.deepEqual(bad, [])
})

test('a file has at most 600 lines', () => {
  const long = house.filter(({ lines }) => lines > LINES_MAX)
  assert.deepEqual(pluck(long, 'path'), [])
})

test('a function has at most 70 lines, those of the functions within it apart, and 4 parameters', () => {
  const wrong = product.flatMap(({ path, functions }) =>
    functions
      .filter(({ lines, parameters }) => lines > FUNCTION_LINES_MAX || parameters > PARAMETERS_MAX)
      .map(({ name, lines, parameters }) => `${path}: ${name} has ${lines} lines and ${parameters} parameters`),
  )
  assert.deepEqual(wrong, [])
})

test('a function of the database has at most 100 lines', () => {
  const functions = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
    .filter((path) => /^database\/functions\/|^extensions\/\w+\/functions\.sql$/.test(path))
    .flatMap((path) =>
      textOf(path)
        .split(/^(?=create (?:or replace )?function )/m)
        .slice(1),
    )
    .map((text) => ({
      name: text.match(/function (\w+)/)?.[1],
      lines: text.split(/^(?:end )?\$\$;$/m)[0]!.split('\n').length,
    })) // there is one before the end
  assert.ok(functions.some(({ name }) => name === 'ledger_post'))
  none(functions, ({ lines }) => lines > SQL_FUNCTION_LINES_MAX)
})

test('a cast or a non-null assertion says why; those that do not become fewer: npm run generate', () => {
  assert.deepEqual(castsOf(house), JSON.parse(readFileSync(join(ROOT, CASTS_FILE), 'utf8')))
})

test('an export is used by another file, and not by tests alone', () => {
  const users = new Map<string, string[]>()
  for (const { path, imports } of house) for (const name of imports) users.set(name, [...(users.get(name) ?? []), path])
  const usersOf = (path: string, name: string) => [
    ...(users.get(`${path}#${name}`) ?? []),
    ...(users.get(`${path}#*`) ?? []),
  ]
  // What writes the reference pages is no test.
  const isTest = (path: string) => /^(test|bench)\/(?!pages\/|generate)|\.test\.tsx?$/.test(path)
  // A declaration says what a package exports, and is asked for by the package's name.
  const own = product.filter(({ path }) => !path.endsWith('.d.ts'))
  const exported = own.flatMap(({ path, exports }) => exports.map((name) => [path, name] as const))
  assert.deepEqual(
    exported.filter(([path, name]) => usersOf(path, name).length === 0).map((one) => one.join('#')),
    [],
  )
  assert.deepEqual(
    exported
      .filter(([path, name]) => usersOf(path, name).every(isTest))
      .map((one) => one.join('#'))
      .sort(),
    [...FOR_TESTS].sort(),
  )
})

test('nothing is left over: no marks, no silenced types', () => {
  none(sources, (path) => /\bTODO\b|\bFIXME\b|\bXXX\b|@ts-ignore|@ts-nocheck|\bas any\b/.test(textOf(path)))
})

test('a test that looks again and again does so by until, which ends and says what it saw; one that pauses says why', () => {
  // A loop on one line, and one with a block; the programs of chaos tests keep up their traffic.
  const sleeps =
    /^ *while \(.*\) await new Promise|^ *for \(.*\) await new Promise\(.*setTimeout|^( *)(?:for \(;;\)|while \(.*\)) \{\n(?:(?!\1\}).*\n)*?.*setTimeout\(/m
  const wrong = house.filter(
    ({ path }) => /\.test\.ts$|^test\/(?!chaos\/)/.test(path) && sleeps.test(readFileSync(join(ROOT, path), 'utf8')),
  )
  const silent = house.filter(
    ({ path }) =>
      /\.test\.ts$/.test(path) && /await new Promise\(.*setTimeout\(/.test(readFileSync(join(ROOT, path), 'utf8')),
  )
  assert.deepEqual([...wrong, ...silent.filter(({ path }) => path !== 'test/tidy.test.ts')], [])
})
