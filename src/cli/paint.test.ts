import { stripVTControlCharacters, styleText } from 'node:util'
import { assert, test } from '../../test/kit.ts'
import { painted } from './paint.ts'
import { table } from './table.ts'

const paint = (style: 'bold' | 'green' | 'red', text: string) => styleText(style, text, { validateStream: false })

test('on a terminal the headings of a table are bold and its states have their colours, and no letter changes', () => {
  const rows = [
    { name: 'Northwind paid', state: 'paid' },
    { name: 'Harbor', state: 'failed' },
  ]
  const plain = table(rows, { NAME: 'name', STATE: 'state' })
  const shown = painted(plain)
  assert.ok(shown.startsWith(paint('bold', 'NAME            STATE')), shown)
  assert.ok(shown.includes(`Northwind paid  ${paint('green', 'paid')}`), shown)
  assert.ok(shown.includes(paint('red', 'failed')))
  assert.equal(stripVTControlCharacters(shown), plain)
  assert.equal(painted('{"state":"failed"}'), '{"state":"failed"}')
})

test('a table is as wide as its terminal: long texts lose their ends, ids their middles, and numbers nothing', () => {
  const rows = [
    { id: 'pay_01m7rnm12r000sw2k8pjzvc8r5', note: 'A payment that somebody explained at length', amount: '1200.50' },
    { id: 'pay_01m7rnm1v7000781et27hakemw', note: 'short', amount: '7.00' },
  ]
  const columns = { PAYMENT: 'id', NOTE: 'note', AMOUNT: 'amount' } as const
  const lines = table(rows, columns, 48).split('\n')
  assert.ok(lines.every((line) => line.length <= 48) && lines[1]?.endsWith('  1200.50'), lines.join('\n'))
  assert.match(lines[1] ?? '', /^pay_\w+…zvc8r5 {2}A payment .*…/)
  assert.ok(table(rows, columns, 200).includes(rows[0]?.id ?? ''))
})
