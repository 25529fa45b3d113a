import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pluck } from '../../../../test/lists.ts'
import { barsOfTable, shapesOf } from './shape.ts'

test('a series of points becomes lines, also when it is a list of lists', () => {
  const points = [
    { Key: '2026-10-01', Value: 5 },
    { Key: '2026-11-01', Value: 7 },
  ]
  const { series } = shapesOf({ Data: { 'example.com': { Desktop: [points], MobileWeb: [points.slice(1)] } } })
  assert.deepEqual(series, [
    {
      title: 'example.com',
      labels: ['2026-10-01', '2026-11-01'],
      lines: [
        { name: 'Desktop', values: [5, 7] },
        { name: 'MobileWeb', values: [null, 7] },
      ],
    },
  ])
})

test('rows become a table, and names with numbers a chart of it', () => {
  const { tables } = shapesOf({
    TotalCount: 2,
    Filters: { country: [{ id: 1, text: 'x' }] },
    Data: [
      { Domain: 'a.com', Rank: 2, Favicon: 'https://x/y.png' },
      { Domain: 'b.com', Rank: 9 },
    ],
  })
  assert.equal(tables.length, 1)
  assert.deepEqual(tables[0]?.columns, ['Domain', 'Rank'])
  assert.deepEqual(tables[0] && barsOfTable(tables[0]), { name: 'Domain', numbers: ['Rank'] })
})

test('a chart of a table begins with how much, not with the rank', () => {
  const row = { Domain: 'a.com', Rank: 2, Change: 0.1, AvgVisitDuration: 5, TotalVisits: 7, Share: 0.5 }
  const [table] = shapesOf([row, row]).tables
  assert.deepEqual(table && barsOfTable(table)?.numbers, ['Share', 'TotalVisits', 'AvgVisitDuration', 'Rank', 'Change'])
})

test('shares by name become bars, plain or one level deeper', () => {
  const channels = shapesOf({ Data: { Total: { 'example.com': { Direct: 10, Social: 4 } } } })
  assert.deepEqual(channels.bars, [
    {
      title: 'example.com',
      bars: [
        { name: 'Direct', value: 10 },
        { name: 'Social', value: 4 },
      ],
    },
  ])
  const networks = shapesOf({ Data: { 'example.com': { Youtube: { Share: 0.6 }, Reddit: { Share: 0.4 } } } })
  assert.equal(networks.bars[0]?.bars.length, 2)
  assert.deepEqual(networks.figures, [])
})

test('numbers that measure different things are not drawn against each other', () => {
  const visits = { 'example.com': { TotalVisits: 9e8, Change: -0.02, ShareOfVisits: 1 } }
  const { bars, figures } = shapesOf({ Data: visits, TotalVisits: 5, TotalCount: 1 })
  assert.equal(bars.length, 0)
  assert.deepEqual(pluck(figures, 'title'), ['', 'example.com'])
})

test('countries are shown by name where the answer says what they are called', () => {
  const { tables } = shapesOf({
    Filters: { country: [{ id: 36, text: 'Australia' }] },
    Data: [
      { Country: 36, Share: 0.5 },
      { Country: 840, Share: 0.2 },
    ],
  })
  assert.deepEqual(pluck(tables[0]?.rows, 'Country'), ['Australia', 840])
})

test('answers of no known shape are left to the JSON view', () => {
  for (const body of [null, 1, 'text', [], {}, [[[[[]]]]], { a: { b: { c: null } } }])
    assert.deepEqual(shapesOf(body), { tables: [], series: [], bars: [], figures: [] })
})
