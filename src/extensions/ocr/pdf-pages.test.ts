import { deflateSync } from 'node:zlib'
import { assert, test } from '../../../test/kit.ts'
import { countPdfPages } from './pdf-pages.ts'

const HEAD = Buffer.from('%PDF-1.7\n1 0 obj <</Type /Pages /Count 7>> endobj\n')

function fileOf(object: Buffer, bytes: number): Buffer {
  return Buffer.concat([HEAD, Buffer.alloc(bytes, object)])
}

function streamOf(content: string, first: number): Buffer {
  const packed = deflateSync(Buffer.from(content))
  return Buffer.concat([Buffer.from(`/Type/ObjStm/First ${first} stream\n`), packed, Buffer.from('endobj')])
}

const WORST: Readonly<Record<string, (bytes: number) => Buffer>> = {
  'empty streams': (bytes) => fileOf(streamOf('', 0), bytes),
  'empty objects': (bytes) => fileOf(Buffer.from('endobj'), bytes),
  'places of objects in streams': (bytes) => fileOf(streamOf('1 1 '.repeat(50_000), 200_000), bytes),
}

for (const [name, worst] of Object.entries(WORST))
  test(`a file full of ${name} has unknown pages, and is not read to its end`, () => {
    const costOf = (bytes: number) => {
      const file = worst(bytes)
      const runs = [1, 2, 3].map(() => {
        const before = process.cpuUsage()
        assert.equal(countPdfPages(file), undefined)
        const { user, system } = process.cpuUsage(before)
        return user + system
      })
      return Math.min(...runs)
    }
    const few = costOf(2_000_000)
    assert.ok(costOf(20_000_000) < 5 * few + 20_000)
  })

test('the objects of many streams are counted', () => {
  const nodes = Buffer.concat(
    Array.from({ length: 1_000 }, (_, index) => streamOf(`1 0 <</Type/Pages/Count ${index}>>`, 4)),
  )
  assert.equal(countPdfPages(Buffer.concat([HEAD, nodes])), 999)
})
