import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { assert, test } from '../../test/kit.ts'
import { listMigrations } from './migrate.ts'
import { TABLES } from './tables.ts'

const SRC = join(import.meta.dirname, '..')
const MADE = /^create table (?:if not exists )?(\w+) (?!partition of)/gm

test('every table of the schema says how it shrinks', async () => {
  const made = (await listMigrations()).flatMap(({ sql }) => [...sql.matchAll(MADE)].map(([, name]) => name))
  assert.deepEqual(made.toSorted(), Object.keys(TABLES).toSorted())
  for (const [name, { bound }] of Object.entries(TABLES)) assert.notEqual(bound, '', name)
})

test('what is not kept for ever is removed by some statement', () => {
  const sources = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(ts|sql)$/.test(name) && !name.includes('.test.'))
    .map((name) => readFileSync(join(SRC, name), 'utf8'))
    .join('\n')
  // Partitions of usage and transfer are dropped, and sums are folded by the one statement that names no table.
  const removed = new RegExp(`delete from (${Object.keys(TABLES).join('|')})\\b`, 'g')
  const seen = new Set([
    'usage',
    'transfer',
    'usage_day',
    ...[...sources.matchAll(removed)].map(([, name]) => name ?? ''),
  ])
  const stays = Object.entries(TABLES).flatMap(([name, { way }]) =>
    ['kept', 'ends', 'folded'].includes(way) && !seen.has(name) ? [name] : [],
  )
  assert.deepEqual(stays, [])
})
