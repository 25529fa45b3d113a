import { assert, test } from '../../../test/kit.ts'
import { FormError, FormReader } from './multipart.ts'

test('a form is read the same however it is cut', () => {
  const text = `--x\r\ncontent-disposition: form-data; name="file"; filename="a \\"b\\".wav"\r\nContent-Type: audio/wav; x=y\r\n\r\n\r\n--not\r\n--x-\r\n--x\r\ncontent-disposition: form-data; name="model"\r\n\r\n\r\n--x--\r\nafter`
  const read = (size: number) => {
    const found: unknown[] = []
    const reader = new FormReader('multipart/form-data; boundary=x', (head) => {
      let said = ''
      return {
        push(bytes) {
          said += bytes.toString()
        },
        end: () => found.push([head, said]),
      }
    })
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size))
    reader.end()
    return found
  }
  const whole = read(text.length)
  assert.deepEqual(whole, [
    [{ name: 'file', filename: 'a "b".wav', type: 'audio/wav' }, '\r\n--not'],
    [{ name: 'model', filename: undefined, type: '' }, ''],
  ])
  for (let size = 1; size < 40; size++) assert.deepEqual(read(size), whole, String(size))
})

test('what is long before it is known what it is, is refused', () => {
  const sink = { push() {}, end() {} }
  const reads = (text: string, count: number) => () => {
    const reader = new FormReader('multipart/form-data; boundary=x', () => sink)
    for (let turn = 0; turn < count; turn++) reader.push(Buffer.from(text))
    reader.end()
  }
  assert.throws(reads('y', 2_000), FormError)
  assert.throws(reads('--x\r\nname: y', 1_000), FormError)
  assert.throws(reads('\r\n--x\r\ncontent-disposition: form-data; name="a"\r\n\r\n', 101), FormError)
  for (const type of ['', 'multipart/form-data', 'multipart/mixed; boundary=x', 'multipart/form-data; boundary='])
    assert.throws(() => new FormReader(type, () => sink), FormError)
})

test('a form that comes byte by byte costs little more than its bytes', () => {
  let bytes = 0
  const reader = new FormReader('multipart/form-data; boundary=x', () => ({
    push: (piece) => {
      bytes += piece.length
    },
    end() {},
  }))
  const head = `--x\r\ncontent-disposition: form-data; name="file"; filename="${'y'.repeat(1_900)}"\r\n\r\n`
  const one = Buffer.from('\r')
  for (const letter of head) reader.push(Buffer.from(letter))
  // The worst there is: each may be the beginning of the end.
  for (let turn = 0; turn < 300_000; turn++) reader.push(one)
  reader.push(Buffer.from('\r\n--x--'))
  reader.end()
  assert.equal(bytes, 300_000)
})
