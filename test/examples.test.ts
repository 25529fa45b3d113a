// The examples are read before anything else, so they must be right.
import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { test } from 'node:test'
import { type Catalogue, overlay } from '../examples/connect.ts'
import { checkDocument } from '../src/catalog/document.ts'
import { readDefaultCatalog } from '../src/compose.ts'

const EXAMPLES = resolve(import.meta.dirname, '..', 'examples')
const files = globSync('catalogs/*.json', { cwd: EXAMPLES }).sort()
const readExample = async (file: string) => JSON.parse(await readFile(join(EXAMPLES, file), 'utf8')) as Catalogue
const shipped = (await readDefaultCatalog()) as Catalogue

for (const file of files)
  test(`${file} is a valid catalogue, alone and over the shipped one`, async () => {
    const example = await readExample(file)
    const alone = checkDocument(example)
    assert.deepEqual(alone.ok ? [] : alone.problems, [])
    const both = checkDocument(overlay(shipped, example))
    assert.ok(both.ok)
    const [vendor] = Object.keys(example.vendors)
    assert.match(both.document.vendors[vendor!]!.baseUrl, /^https:\/\//)
    assert.ok(both.document.vendors[vendor!]!.credential)
  })

test('connecting a vendor changes its address and routes, and leaves prices and other vendors as they are', async () => {
  const example = await readExample('catalogs/openai.json')
  const own = structuredClone(shipped) as Catalogue & { models: Record<string, { pricing?: unknown }> }
  own.models['alpha-5.4']!.pricing = { unit: 'credits', tiers: [{ input: '1', output: '2' }] }
  const merged = overlay(own, example) as typeof own
  assert.deepEqual(merged.models['alpha-5.4']!.pricing, own.models['alpha-5.4']!.pricing)
  assert.deepEqual(merged.models['beta-sonnet-5'], own.models['beta-sonnet-5'])
  assert.deepEqual(Object.keys(merged).sort(), Object.keys(shipped).sort())
})

test('every vendor of the shipped catalogue has an example, and every example is in the list', async () => {
  const covered = new Set<string>()
  for (const file of files) for (const name of Object.keys((await readExample(file)).vendors)) covered.add(name)
  assert.deepEqual([...covered].sort(), Object.keys(shipped.vendors).sort())
  const readme = await readFile(join(EXAMPLES, 'README.md'), 'utf8')
  assert.deepEqual(
    files.filter((file) => !readme.includes(`\`${basename(file)}\``)),
    [],
  )
})
