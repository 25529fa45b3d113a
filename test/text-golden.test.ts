// Golden transcripts: what each door gives for each recorded answer of each vendor, and what each vendor gets for each
// door's request. Run with GOLDEN=write to write them anew, and read the difference before committing it.
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { FORMATS as PRODUCT } from '../src/protocols/text/formats.ts'
import { CLIENT_FORMATS, PAIRS } from './formats.ts'
import { assert, test } from './kit.ts'
import { FIXTURES, fixture, openBody, openPair, recordingsOf, replay, traitsOf } from './text-replay.ts'
import { asked, rejections, told } from './wrong-bodies.ts'

function compare(path: string, text: string): void {
  const file = join(FIXTURES, 'golden', path)
  if (process.env.GOLDEN === 'write') {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  assert.ok(existsSync(file), `${path} is missing`)
  assert.equal(text, readFileSync(file, 'utf8'))
}

for (const { front, back } of PAIRS) {
  const pair = `${front}-from-${back}`

  test(`a ${front} caller reads every recorded stream of a ${back} vendor`, async () => {
    let golden = ''
    for (const name of recordingsOf(back, 'sse')) {
      const tools =
        front === 'openai-chat' && name.startsWith('no-index')
          ? [{ type: 'function', function: { name: 'f' } }]
          : undefined
      const exchange = await openPair({ front, back, traits: traitsOf(name), request: { tools } })
      const { sent, last, usage, fault, terminal } = replay(exchange, [fixture(back, name)])
      golden += `======== ${name}\n${sent}-------- ${terminal ? 'finish' : 'fail'} ${fault ?? ''}\n${last}-------- ${JSON.stringify(usage)}\n`
    }
    compare(`streams/${pair}.txt`, golden)
  })

  test(`a ${front} caller reads every recorded answer of a ${back} vendor`, async () => {
    let golden = ''
    for (const name of recordingsOf(back, 'json')) {
      const exchange = await openPair({ front, back, stream: false, traits: traitsOf(name) })
      const { body, usage, outputChars } = await exchange.answer(fixture(back, name), {})
      const pretty = JSON.stringify(JSON.parse(Buffer.from(body).toString('utf8')), undefined, 1)
      golden += `======== ${name}\n${pretty}\n-------- ${JSON.stringify(usage)} ${outputChars}\n`
    }
    compare(`answers/${pair}.txt`, golden)
  })

  test(`a ${back} vendor gets what a ${front} caller asked`, async () => {
    let golden = ''
    for (const name of globSync('request-*.json', { cwd: join(FIXTURES, front) }).sort()) {
      const { call } = await openBody(front, back, fixture(front, name), {})
      const { headers, url } = call
      const body = JSON.stringify(JSON.parse(String(call.body)), undefined, 1)
      golden += `======== ${name}\n${url}\n${JSON.stringify(headers, undefined, 1)}\n${body}\n`
    }
    compare(`requests/${front}-to-${back}.txt`, golden)
  })
}

for (const format of CLIENT_FORMATS)
  test(`a wrong ${format} body is rejected with the same words as before`, () => {
    const names = PRODUCT[format].body.forwarded
    compare(`rejections/${format}.txt`, told(rejections(format, names, asked(format))))
  })
