// What a refusal says: never that something must be what it is, and always a sentence.
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { makeDataDirectory } from './chaos/gateway-process.ts'
import { fixtureOf } from './fixture.ts'
import { assert, test, testGateway } from './gateway.ts'
import { runProgram } from './sdk/cache.ts'

const ROOT = resolve(import.meta.dirname, '..')
const BODIES = fixtureOf<Readonly<Record<string, object>>>('bodies.yaml')
const ODD: readonly unknown[] = ['', 0, true, [], {}]

let key: string
const gateway = testGateway({ isShared: true }, async () => {
  key = (await gateway.account()).key
})

/** The body with each of its members, at any depth, replaced by something odd. */
function* spoiled(body: unknown): Generator<unknown> {
  if (typeof body !== 'object' || body === null) return
  for (const name of Object.keys(body)) {
    const put = (value: unknown) => (Array.isArray(body) ? body.with(Number(name), value) : { ...body, [name]: value })
    for (const odd of ODD) yield put(odd)
    for (const inner of spoiled((body as Record<string, unknown>)[name])) yield put(inner)
  }
}

/** "must be a string, not the string …", "must be an array of objects, not an array". */
const CONTRADICTION =
  /must be (?:a |an |one )?(?:string(?! or)[^,]*, not (?:the|an empty) string|text[^,]*, not (?:the|an empty) string|array[^,]*, not an array|object[^,]*, not an object|true or false, not (?:true|false))/

test('no refusal says that something must be what it is', async () => {
  const wrong = new Set<string>()
  let refused = 0
  for (const [path, body] of Object.entries(BODIES))
    for (const sent of spoiled(body)) {
      const answer = await gateway.call(path, key, sent)
      const text = await answer.text()
      if (answer.status < 400) continue
      refused++
      assert.ok(answer.status < 500, text)
      const { message, error } = JSON.parse(text) as { message?: string; error?: { message: string } }
      const said = error?.message ?? message ?? ''
      if (CONTRADICTION.test(said)) wrong.add(`${path}: ${said}`)
    }
  assert.ok(refused > 200, String(refused))
  assert.deepEqual([...wrong], [])
})

test('a model whose name is empty or blank is asked for, with where to find the names', async () => {
  for (const [path, body] of Object.entries(BODIES))
    for (const model of ['', ' ']) {
      const answer = await gateway.call(path, key, { ...body, model })
      const text = await answer.text()
      assert.ok([400, 404].includes(answer.status), text)
      assert.doesNotMatch(text, /must be a string/, path)
    }
})

test('a catalog file that cannot be applied is refused in a sentence that names it', async () => {
  const data = await makeDataDirectory()
  const file = join(data.path, 'catalog.json')
  const cases: ReadonlyArray<[content: string | undefined, said: RegExp]> = [
    ['{"vendors":{},"models":{}}', /is not valid\. endpoints: is missing/],
    ['[]', /is not valid\. document: expected object, received array/],
    ['{"vendors":', /is not JSON/],
    [undefined, /there is no such file/],
  ]
  for (const [content, said] of cases) {
    if (content !== undefined) await writeFile(file, content)
    const given = content === undefined ? `${file}.missing` : file
    const { code, err } = await runProgram(process.execPath, [join(ROOT, 'src', 'main.ts'), 'serve'], {
      env: { PATH: process.env.PATH, PORT: '0', TOLLGATE_DATA: data.path, TOLLGATE_CATALOG: given },
    })
    assert.equal(code, 1)
    assert.match(err, said)
    assert.ok(err.includes(`TOLLGATE_CATALOG: ${given}`), err)
    assert.doesNotMatch(err, /^ +at /m)
  }
  await data.remove()
})
