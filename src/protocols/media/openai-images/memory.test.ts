// The largest request there may be, through a process of its own that does with it what the gateway does: read it, hold
// it, send it on as a form, and store what comes back.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'

const MB = 1_048_576
const PNG = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d494844520000000100000001', 'hex'), Buffer.alloc(6)])

const GATEWAY = `
  import http from 'node:http'
  import { realWorld } from '${new URL('../../../kernel/world.ts', import.meta.url)}'
  import { createByteBudget } from '${new URL('../../../upstream/budget.ts', import.meta.url)}'
  import { createUpstream } from '${new URL('../../../upstream/exchange.ts', import.meta.url)}'
  import { readImageRequest } from '${new URL('./request.ts', import.meta.url)}'
  import { readImageBody } from '${new URL('./body.ts', import.meta.url)}'
  const upstream = createUpstream({ world: realWorld })
  const budget = createByteBudget({ world: realWorld, bytesMax: 1e9, queueMax: 1 })
  const signal = new AbortController().signal
  const deadlines = { connectMs: 5e3, firstByteMs: 60e3, idleMs: 60e3, totalMs: 120e3 }
  const before = process.memoryUsage().rss
  const server = http.createServer(async (request, response) => {
    const lease = await budget.acquire('account', 4e8, signal)
    const body = await readImageBody(request, { contentLength: undefined })
    const ask = readImageRequest(body, { uid: 'alpha-image-2' }, {
      lease,
      fetchImage: () => Promise.reject(new Error('nothing to fetch')),
      store: async () => ({ url: 'http://g/0', remove: async () => {} }),
    })
    const target = { protocol: 'openai-images', baseUrl: process.argv[1], secret: undefined, headers: {}, model: 'm', traits: {} }
    await ask.gather?.(signal)
    const exchange = await ask.open(target, { requestId: 'req_1', createdSeconds: 0, signal })
    const reply = await upstream.send(exchange.call, { deadlines, signal })
    await exchange.answer(await reply.read(1e6), reply.headers)
    lease.release()
    // maxRSS counts in kilobytes.
    response.end(JSON.stringify({ inline: body.inlineBytes, before, peak: process.resourceUsage().maxRSS * 1024 }))
  })
  server.listen(0, '127.0.0.1', () => console.log(server.address().port))
`

test('a request of 256 MB of pictures costs less than twice its size in memory', async () => {
  let uploaded = 0
  const vendor = http.createServer(async (request, response) => {
    for await (const chunk of request) uploaded += chunk.length
    response.end(JSON.stringify({ data: [{ b64_json: PNG.toString('base64') }] }))
  })
  vendor.listen(0, '127.0.0.1')
  await once(vendor, 'listening')
  const vendorUrl = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`
  const gateway = spawn(process.execPath, ['--input-type=module', '-e', GATEWAY, vendorUrl], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const ended = once(gateway, 'exit').then(([code]) => Promise.reject(new Error(`it ended with ${code}`)))
    ended.catch(() => undefined)
    const [port] = (await Promise.race([once(gateway.stdout, 'data'), ended])) as [Buffer]
    const request = http.request({ method: 'POST', port: Number(port), host: '127.0.0.1' })
    const answered = once(request, 'response')
    const run = Buffer.alloc(65_536, 'A')
    const write = async (chunk: string | Buffer) => {
      if (!request.write(chunk)) await once(request, 'drain')
    }
    await write('{"model":"m","prompt":"x","image_urls":[')
    for (let image = 0; image < 16; image++) {
      await write(`${image > 0 ? ',' : ''}"data:image/png;base64,${PNG.toString('base64')}`)
      const left = 16 * MB - PNG.length
      for (let chars = Math.floor(left / 3) * 4; chars > 0; chars -= run.length)
        await write(chars < run.length ? run.subarray(0, chars) : run)
      await write(`${['', 'AA==', 'AAA='][left % 3]}"`)
    }
    request.end(']}')
    const [response] = (await answered) as [http.IncomingMessage]
    let text = ''
    for await (const chunk of response) text += chunk
    const { inline, before, peak } = JSON.parse(text)
    assert.equal(inline, 256 * MB)
    assert.ok(uploaded > 256 * MB)
    console.log(`peak RSS ${Math.round(peak / MB)} MB, of which ${Math.round(before / MB)} MB before the request`)
    assert.ok(peak < 2 * 256 * MB, `peak RSS ${Math.round(peak / MB)} MB`)
  } finally {
    gateway.kill()
    vendor.closeAllConnections()
    vendor.close()
  }
})
