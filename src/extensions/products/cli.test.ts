// Products from the command line, as a user goes about it: what a file has to sell, what it would change, sold, listed,
// priced anew, removed; and bad files.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { commandLineOf } from '../../../test/command-line.ts'
import { fixtureText } from '../../../test/fixture.ts'
import { assert, started, temporary, test } from '../../../test/kit.ts'
import { startOperatorServer } from '../../../test/operator-server.ts'

const server = started(startOperatorServer)
const folder = temporary('tollgate-products-')
const { run } = commandLineOf(() => server, { secrets: { MAPS_KEY: 'maps-secret-0123456789' } })

const MAPS = fixtureText('openapi/maps.yaml')

async function file(name: string, content: string): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, content)
  return path
}

async function said(code: number, ...words: string[]): Promise<string> {
  const ran = await run(['products', ...words])
  assert.equal(ran.code, code, ran.err + ran.out)
  return ran.out + ran.err
}

test('a document is read, looked at, sold, listed, priced anew and removed', async () => {
  const maps = await file('maps.yaml', MAPS)
  assert.match(await said(0, 'list'), /No products yet/)
  const read = await said(0, 'read', maps)
  assert.match(read, /search +GET \/search +Search places/)
  assert.match(read, /upload +POST \/upload .*form/)
  const sell = ['import', 'maps', maps, '--rows', 'results:limit', '--timeout', '5', '--credential', 'MAPS_KEY']
  const dry = await said(0, ...sell, '--price', 'call=0.1,row=0.01', '--dry-run')
  assert.match(dry, /POST \/upload is left out/)
  assert.match(dry, /maps\/search/)
  assert.match(await said(0, 'list'), /No products yet/, 'nothing was applied')
  const done = await said(0, ...sell, '--choose', 'search', '--price', 'call=0.1,row=0.01', '--key-env', 'MAPS_KEY')
  assert.match(done, /Version \d+ is in force/)
  assert.doesNotMatch(done, /maps-secret/)
  assert.match(await said(0, 'list'), /maps +search +GET \/v1\/maps\/search +call=0\.1,row=0\.01 +maps +yes/)
  const again = await said(
    0,
    'import',
    'maps',
    maps,
    '--choose',
    'search',
    '--price',
    'call=0.2',
    '--credential',
    'MAPS_KEY',
  )
  assert.match(again, /0\.2/)
  assert.match(await said(0, 'list'), /GET \/v1\/maps\/search +call=0\.2 /)
  assert.match(await said(0, 'remove', 'maps', '--dry-run'), /maps/)
  assert.match(await said(0, 'list'), /maps +search/)
  assert.match(await said(0, 'remove', 'maps'), /Version \d+ is in force/)
  assert.match(await said(0, 'list'), /No products yet/)
  assert.match(await said(1, 'remove', 'maps'), /There is no product "maps"/)
})

test('what is wrong is said with its line, its place or what to write instead, and changes nothing', async () => {
  const price = ['--price', 'call=1']
  const bad = (name: string, content: string) => file(name, content)
  const cases: readonly (readonly [words: string[], code: number, message: RegExp])[] = [
    [['read', join(folder, 'nothing.yaml')], 1, /nothing\.yaml could not be read: there is no such file/],
    [['read', await bad('broken.yaml', `${MAPS}\n  bad: [`)], 1, /line 1[6-9]/],
    [['read', await bad('broken.json', '{\n  "openapi": "3.1.0",\n  oops\n}')], 1, /line 3/],
    [['read', await bad('swagger.json', '{"swagger":"2.0"}')], 1, /OpenAPI document of version 3/],
    [
      [
        'import',
        'maps',
        await bad('remote.yaml', MAPS.replace('{ name: limit,', '{ $ref: "https://evil.example/x", name: limit,')),
        '--choose',
        'search',
        ...price,
      ],
      1,
      /line 9/,
    ],
    [['import', 'maps', await bad('maps.yaml', MAPS), '--choose', 'upload', ...price], 1, /POST \/upload/],
    [['import', 'maps', await bad('maps.yaml', MAPS), '--choose', 'sell', ...price], 1, /has no "sell"/],
    [['import', 'maps', await bad('maps.yaml', MAPS), '--choose', 'search'], 1, /"search" has no price/],
    [['import', 'maps', await bad('maps.yaml', MAPS), '--price', '1'], 2, /--price takes name=value pairs, not "1"/],
    [
      ['import', 'maps', await bad('maps.yaml', MAPS), '--price', 'row=1', '--rows', 'results'],
      2,
      /--rows takes list:most, not "results"/,
    ],
    [
      ['import', 'maps', await bad('maps.yaml', MAPS), '--key-env', 'NO_KEY', ...price],
      2,
      /no value in the environment variable NO_KEY/,
    ],
    [
      ['import', 'v1', await bad('maps.yaml', MAPS), '--timeout', 'soon', ...price],
      2,
      /--timeout takes a whole number/,
    ],
    [
      ['import', 'models', await bad('maps.yaml', MAPS), '--choose', 'search', ...price],
      1,
      /name of the gateway itself/,
    ],
    [
      [
        'import',
        'maps',
        await bad('maps.yaml', MAPS),
        '--choose',
        'search',
        '--price',
        'call=0,metered=1',
        '--expression',
        'answer.cost',
      ],
      1,
      /no upper bound/,
    ],
    [
      [
        'import',
        'maps',
        await bad('local.yaml', MAPS.replace('maps.example.com', '10.0.0.1')),
        '--choose',
        'search',
        ...price,
      ],
      1,
      /not a public address/,
    ],
    [['add', 'nobody'], 1, /there is no "nobody"; there are brave-search/],
  ]
  for (const [words, code, message] of cases) assert.match(await said(code, ...words), message, words.join(' '))
  assert.match(await said(0, 'list'), /No products yet/)
})
