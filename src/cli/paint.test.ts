import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stripVTControlCharacters, styleText } from 'node:util'
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
