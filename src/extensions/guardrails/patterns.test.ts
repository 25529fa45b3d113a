import { assert, test } from '../../../test/kit.ts'
import { namedPattern, ownPattern, type Pattern } from './patterns.ts'

const CARD = '4111 1111 1111 1111'
const IBAN = 'DE89 3704 0044 0532 0130 00'
const MAIL = 'mara@corp.example'
const SPACES = ['\u00a0', '\t', '\n', '\r\n', '.', '\u2013', '\u2011', '\u2212', '\u202f', '\u3000', '-', '']

const fullWidth = (text: string) =>
  text.replaceAll(/[!-~]/g, (one) => String.fromCharCode(one.charCodeAt(0) + 0xfee0)).replaceAll(' ', '\u3000')
const mathematical = (text: string) => text.replaceAll(/\d/g, (one) => String.fromCodePoint(0x1d7ce + Number(one)))
const zeroWidth = (text: string) => [...text].join('\u200b')
const soft = (text: string) => text.replaceAll(/(.{3})(?=.)/g, '$1\u00ad\ufeff')

/** What is hidden of a text in which it stands. */
function found(pattern: Pattern, written: string): string[] {
  const text = `Ünder ${written} stands it.`
  const spans = [...pattern.spans(text)]
  // A stream must not let go of what may still become a match.
  for (const [start, end] of spans) {
    const openFrom = pattern.openFrom(text.slice(0, end - 1))
    assert.ok(openFrom <= start, `${JSON.stringify(written)}: open from ${openFrom}, begins at ${start}`)
  }
  return spans.map((span) => text.slice(...span))
}

test('redaction finds cards and IBANs whatever separates their groups', () => {
  for (const space of SPACES) {
    const card = CARD.replaceAll(' ', space)
    assert.deepEqual(found(namedPattern('r', 'card'), card), [card])
    const iban = IBAN.replaceAll(' ', space)
    assert.deepEqual(found(namedPattern('r', 'iban'), iban), [iban])
  }
})

test('redaction finds what is written in compatibility forms or with characters without a width, and hides it as it was written', () => {
  for (const write of [fullWidth, mathematical, zeroWidth, soft])
    for (const [name, text] of [
      ['card', CARD],
      ['iban', IBAN],
      ['email', MAIL],
      ['phone', '+49 30 1234567'],
    ] as const) {
      const written = write(text)
      assert.deepEqual(found(namedPattern('r', name), written), [written], `${name} ${write.name}`)
    }
  assert.deepEqual(found(namedPattern('r', 'email'), 'mara%40corp.example'), ['mara%40corp.example'])
  assert.deepEqual(found(ownPattern('r', 'own', 'EMP-\\d{4}'), fullWidth('EMP-1234')), [fullWidth('EMP-1234')])
})

test('columns of numbers and decimals are no cards', () => {
  for (const text of ['41\n11\n11\n11\n11\n11\n11\n11', '4.1 1.1 1.1 1.1 1.1 1.1 1.1 1.1', '3.14159265358979'])
    assert.deepEqual(found(namedPattern('r', 'card'), text), [])
})
