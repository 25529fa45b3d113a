import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { Fault } from '../kernel/fault.ts'
import { realWorld, type World } from '../kernel/world.ts'
import { ADDRESS_REFUSED, createGuardedFetch, type GuardOptions, IMAGE_REFUSED } from './guard.ts'

const signal = new AbortController().signal
const MB = 1_048_576
/** In the range of public addresses, but given to nobody. */
const NOBODY = '2d00::1'

/** A 1×1 PNG header and whatever follows: enough for what looks at headers only. */
function png(bytes: number, width = 1, height = 1): Buffer {
  const file = Buffer.alloc(bytes)
  Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').copy(file)
  file.writeUInt32BE(width, 16)
  file.writeUInt32BE(height, 20)
  return file
}

// ---- Sixty ways to say "inside". P is the canary's port; the address is what a name would resolve to.

const VECTORS: ReadonlyArray<readonly [url: string, address: string]> = [
  ['http://127.0.0.1:P/', '127.0.0.1'],
  ['http://127.1:P/', '127.0.0.1'],
  ['http://2130706433:P/', '127.0.0.1'],
  ['http://0x7f.1:P/', '127.0.0.1'],
  ['http://0x7f000001:P/', '127.0.0.1'],
  ['http://0177.0.0.1:P/', '127.0.0.1'],
  ['http://017700000001:P/', '127.0.0.1'],
  ['http://127.0.0.1.:P/', '127.0.0.1'],
  ['http://①②⑦.⓪.⓪.①:P/', '127.0.0.1'],
  ['http://%31%32%37.0.0.1:P/', '127.0.0.1'],
  ['http://0:P/', '0.0.0.0'],
  ['http://0.0.0.0:P/', '0.0.0.0'],
  ['http://0.1.2.3:P/', '0.1.2.3'],
  ['http://127.255.255.254:P/', '127.255.255.254'],
  ['http://localhost:P/', '127.0.0.1'],
  ['http://localhost.:P/', '::1'],
  ['http://LOCALHOST:P/', '127.0.0.1'],
  ['http://any.localhost:P/', '::1'],
  ['http://[::1]:P/', '::1'],
  ['http://[0:0:0:0:0:0:0:1]:P/', '0:0:0:0:0:0:0:1'],
  ['http://[::]:P/', '::'],
  ['http://[::ffff:127.0.0.1]:P/', '::ffff:127.0.0.1'],
  ['http://[::ffff:7f00:1]:P/', '::ffff:7f00:1'],
  ['http://[0:0:0:0:0:ffff:7f00:0001]:P/', '0:0:0:0:0:ffff:7f00:0001'],
  ['http://[::ffff:0:127.0.0.1]:P/', '::ffff:0:127.0.0.1'],
  ['http://[::127.0.0.1]:P/', '::127.0.0.1'],
  ['http://[64:ff9b::127.0.0.1]:P/', '64:ff9b::127.0.0.1'],
  ['http://[64:ff9b::a9fe:a9fe]:P/', '64:ff9b::a9fe:a9fe'],
  ['http://[64:ff9b:1::127.0.0.1]:P/', '64:ff9b:1::127.0.0.1'],
  ['http://[2002:7f00:1::]:P/', '2002:7f00:1::'],
  ['http://[2002:a9fe:a9fe::1]:P/', '2002:a9fe:a9fe::1'],
  ['http://[2001:0:4136:e378:8000:63bf:80ff:fffe]:P/', '2001:0:4136:e378:8000:63bf:80ff:fffe'],
  ['http://169.254.169.254:P/latest/meta-data/', '169.254.169.254'],
  ['http://[::ffff:169.254.169.254]:P/', '::ffff:169.254.169.254'],
  ['http://169.254.170.2:P/', '169.254.170.2'],
  ['http://[fd00:ec2::254]:P/', 'fd00:ec2::254'],
  ['http://100.100.100.200:P/', '100.100.100.200'],
  ['http://168.63.129.16:P/', '168.63.129.16'],
  ['http://metadata.google.internal:P/', '169.254.169.254'],
  ['http://metadata.goog:P/', '169.254.169.254'],
  ['http://10.0.0.1:P/', '10.0.0.1'],
  ['http://172.16.0.1:P/', '172.16.0.1'],
  ['http://172.31.255.255:P/', '172.31.255.255'],
  ['http://192.168.0.1:P/', '192.168.0.1'],
  ['http://100.64.0.1:P/', '100.64.0.1'],
  ['http://192.0.0.1:P/', '192.0.0.1'],
  ['http://192.0.2.1:P/', '192.0.2.1'],
  ['http://192.88.99.1:P/', '192.88.99.1'],
  ['http://198.18.0.1:P/', '198.18.0.1'],
  ['http://224.0.0.1:P/', '224.0.0.1'],
  ['http://255.255.255.255:P/', '255.255.255.255'],
  ['http://[fc00::1]:P/', 'fc00::1'],
  ['http://[fe80::1]:P/', 'fe80::1'],
  ['http://[fec0::1]:P/', 'fec0::1'],
  ['http://[ff02::1]:P/', 'ff02::1'],
  ['http://[2001:db8::1]:P/', '2001:db8::1'],
  ['http://printer.local:P/', '127.0.0.1'],
  ['http://1.0.0.127.in-addr.arpa:P/', '127.0.0.1'],
  ['http://user:secret@127.0.0.1:P/', '127.0.0.1'],
  ['gopher://127.0.0.1:P/', '127.0.0.1'],
]

let canary: net.Server
let canaryPort = 0
let accepted = 0
let redirector: http.Server
let redirectorHost = ''

before(async () => {
  canary = net.createServer((socket) => {
    accepted++
    socket.on('error', () => {}).end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
  })
  // One listener for every local address: 127.0.0.1, ::1 and 0.0.0.0 all arrive here.
  canary.listen(0, '::')
  await once(canary, 'listening')
  canaryPort = (canary.address() as AddressInfo).port
  redirector = http.createServer((request, response) => {
    const to = new URL(request.url!, 'http://x').searchParams
    response
      .writeHead(Number(to.get('status')), { location: to.get('to')!.replace(/[^!-~]/g, encodeURIComponent) })
      .end()
  })
  redirector.listen(0, '127.0.0.1')
  await once(redirector, 'listening')
  redirectorHost = `127.0.0.1:${(redirector.address() as AddressInfo).port}`
})
after(() => {
  canary.close()
  redirector.closeAllConnections()
  redirector.close()
})

type Way = 'direct' | '302' | '307' | 'a DNS name' | 'rebinding'

async function refusalOf(way: Way, url: string, address: string): Promise<Fault> {
  let asked = 0
  const guard = createGuardedFetch({
    world: realWorld,
    ports: [canaryPort],
    allow: [redirectorHost],
    imageLimits: { connectMs: 500 },
    async resolve() {
      asked++
      return way === 'rebinding' && asked === 1 ? [NOBODY] : [address]
    },
  })
  const from = {
    direct: url,
    '302': `http://${redirectorHost}/?status=302&to=${encodeURIComponent(url)}`,
    '307': `http://${redirectorHost}/?status=307&to=${encodeURIComponent(url)}`,
    'a DNS name': `http://pictures.example.com:${canaryPort}/`,
    rebinding: `http://pictures.example.com:${canaryPort}/`,
  }[way]
  try {
    await guard.fetchImage(from, { bytesMax: 20 * MB, signal })
  } catch (error) {
    assert.ok(error instanceof Fault)
    if (way === 'rebinding') assert.equal(asked, 1, 'a name is asked for once, and the answer is what is connected to')
    return error
  }
  throw new assert.AssertionError({ message: `${from} was fetched` })
}

for (const way of ['direct', '302', '307', 'a DNS name', 'rebinding'] as const) {
  test(`${VECTORS.length} ways to point inside, by ${way}: no connection, one message`, async () => {
    assert.equal(VECTORS.length, 60)
    const before = accepted
    const faults = await Promise.all(
      VECTORS.map(([url, address]) => refusalOf(way, url.replace(':P/', `:${canaryPort}/`), address)),
    )
    for (const fault of faults) {
      assert.equal(fault.kind, 'request_invalid')
      assert.equal(fault.message, IMAGE_REFUSED)
      // The log knows that it was the judgement, and not a redirect that broke on the way.
      if (way !== 'rebinding')
        assert.match(String(fault.details.internal?.why), /^(address|host|scheme|a user|not a full)/)
    }
    assert.equal(accepted, before)
  })
}

test('the canary is reachable at all: an operator who allows it gets through', async () => {
  for (const host of ['127.0.0.1', '::1', 'localhost']) {
    const before = accepted
    const guard = createGuardedFetch({ world: realWorld, allow: [`${host}:${canaryPort}`] })
    const url = `http://${host.includes(':') ? `[${host}]` : host}:${canaryPort}/`
    await assert.rejects(guard.fetchImage(url, { bytesMax: 100, signal }))
    assert.equal(accepted, before + 1)
  }
})

test('odd ports, blanks, control characters, bare names and other schemes are refused before any lookup', async () => {
  let asked = 0
  const guard = createGuardedFetch({
    world: realWorld,
    async resolve() {
      asked++
      return [NOBODY]
    },
  })
  const urls = [
    'http://example.com:22/',
    'http://example.com:8080/',
    'http://exam\tple.com/',
    'http://example.com/a\r\nx: y',
    ' http://example.com/',
    'http://example.com/ a',
    'http://example/',
    'http://exa..mple.com/',
    'http://@example.com:0/',
    'file:///etc/passwd',
    'ftp://example.com/x',
    'data:text/html,x',
    'javascript:alert(1)',
    '//example.com/x',
    'example.com/x.png',
    `http://${'a'.repeat(250)}.com/`,
    `http://example.com/${'a'.repeat(9_000)}`,
    '',
  ]
  for (const url of urls) {
    await assert.rejects(guard.fetchImage(url, { bytesMax: 100, signal }), { message: IMAGE_REFUSED }, url)
    await assert.rejects(guard.check(url, { signal }), { message: ADDRESS_REFUSED }, url)
  }
  assert.equal(asked, 0)
})

test('one private address among public ones refuses the name', async () => {
  const guard = createGuardedFetch({ world: realWorld, resolve: async () => ['8.8.8.8', NOBODY, '10.0.0.1'] })
  await assert.rejects(guard.check('https://mixed.example.com/', { signal }), { message: ADDRESS_REFUSED })
  const fine = createGuardedFetch({ world: realWorld, resolve: async () => ['8.8.8.8', '2606:4700::1111'] })
  await fine.check('https://public.example.com/x?y', { signal })
})

test('a name server that never answers is given up after three seconds', async () => {
  const guard = createGuardedFetch({ world: quick(20), resolve: () => new Promise(() => {}) })
  await assert.rejects(guard.check('https://slow.example.com/', { signal }), { message: ADDRESS_REFUSED })
})

// ---- Limits of what is fetched.

/** A world whose clock runs faster, so that limits of seconds are over in a moment. */
function quick(times: number): World {
  return {
    ...realWorld,
    elapsedMs: () => realWorld.elapsedMs() * times,
    after: (delayMs, run) => realWorld.after(delayMs / times, run),
  }
}

async function serving(
  listener: http.RequestListener,
  use: (url: string, guard: ReturnType<typeof createGuardedFetch>) => Promise<void>,
  options: Partial<GuardOptions> = {},
): Promise<void> {
  const server = http.createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    await use(`http://${host}/`, createGuardedFetch({ world: realWorld, allow: [host], ...options }))
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

function refused(promise: Promise<unknown>, why: RegExp): Promise<void> {
  return assert.rejects(promise, (error) => {
    assert.ok(error instanceof Fault)
    assert.equal(error.message, IMAGE_REFUSED)
    assert.match(String(error.details.internal?.why), why)
    return true
  })
}

test('a picture comes back with its bytes and its true type, with and without an announced length', async () => {
  for (const announced of [true, false]) {
    await serving(
      (request, response) => {
        assert.equal(request.headers['accept-encoding'], 'identity')
        assert.equal(request.headers.cookie, undefined)
        response.setHeader('content-type', 'text/html')
        if (!announced) response.write('')
        if (announced) response.end(png(300_000))
        else {
          response.write(png(300_000).subarray(0, 5))
          response.end(png(300_000).subarray(5))
        }
      },
      async (url, guard) => {
        const image = await guard.fetchImage(url, { bytesMax: 300_000, signal })
        assert.equal(image.type, 'png')
        assert.ok(image.bytes.equals(png(300_000)))
      },
    )
  }
})

test('20 MB pass and one byte more does not, announced or not', async () => {
  for (const bytes of [20 * MB, 20 * MB + 1]) {
    for (const announced of [true, false]) {
      await serving(
        (_request, response) => {
          const file = png(bytes)
          if (announced) response.setHeader('content-length', bytes)
          response.write(file.subarray(0, 100))
          response.end(file.subarray(100))
        },
        async (url, guard) => {
          const fetching = guard.fetchImage(url, { bytesMax: 20 * MB, signal })
          if (bytes === 20 * MB) assert.equal((await fetching).bytes.length, bytes)
          else await refused(fetching, /too large/)
        },
      )
    }
  }
})

test('an endless body is cut at the cap, without gathering more than that', async () => {
  let sent = 0
  await serving(
    (_request, response) => {
      response.write(png(65_536))
      const piece = Buffer.alloc(65_536)
      const write = () => {
        while (!response.destroyed && response.write(piece)) sent += piece.length
      }
      response.on('drain', write)
      write()
    },
    async (url, guard) => {
      const rss = process.memoryUsage().rss
      await refused(guard.fetchImage(url, { bytesMax: 20 * MB, signal }), /too large/)
      assert.ok(process.memoryUsage().rss - rss < 64 * MB)
    },
  )
  assert.ok(sent < 40 * MB, `${sent}`)
})

test('what is encoded, cut short, no picture, an SVG, too many pixels or an error page is refused', async () => {
  const answers: ReadonlyArray<readonly [RegExp, (response: http.ServerResponse) => void]> = [
    [/garbled/, (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(png(100))],
    [
      /failed/,
      (response) => response.writeHead(200, { 'content-length': 1000 }).write(png(100), () => response.destroy()),
    ],
    [/not a picture/, (response) => response.end('<html>hello, this is a page</html>')],
    [/not a picture/, (response) => response.end('<svg xmlns="http://www.w3.org/2000/svg"/>')],
    [/permitted size/, (response) => response.end(png(100, 10_000, 5_001))],
    [/permitted size/, (response) => response.end()],
    [/status 404/, (response) => response.writeHead(404).end(png(100))],
    [/status 304/, (response) => response.writeHead(304).end()],
  ]
  for (const [why, answer] of answers)
    await serving(
      (_request, response) => answer(response),
      (url, guard) => refused(guard.fetchImage(url, { bytesMax: MB, signal }), why),
    )
})

test('silence is cut after 5 s, a trickle by its rate after 3 s, anything after 20 s', async () => {
  const started: Array<() => void> = []
  const trickle = (response: http.ServerResponse, bytes: number) => {
    response.write(png(100))
    const timer = setInterval(() => response.write(Buffer.alloc(bytes)), 20)
    started.push(() => clearInterval(timer))
    response.on('close', () => clearInterval(timer))
  }
  const limits = { world: quick(20) }
  await serving(
    () => {},
    (url, guard) => refused(guard.fetchImage(url, { bytesMax: MB, signal }), /timeout/),
    limits,
  )
  await serving(
    (_request, response) => trickle(response, 1),
    (url, guard) => refused(guard.fetchImage(url, { bytesMax: 20 * MB, signal }), /too slow/),
    limits,
  )
  await serving(
    (_request, response) => trickle(response, 10_000),
    (url, guard) => refused(guard.fetchImage(url, { bytesMax: 20 * MB, signal }), /timeout/),
    limits,
  )
  for (const stop of started) stop()
})

test('three redirects are followed and the fourth is not', async () => {
  await serving(
    (request, response) => {
      const left = Number(request.url?.slice(1) || 0)
      if (left > 0) response.writeHead(302, { location: `/${left - 1}` }).end()
      else response.end(png(100))
    },
    async (url, guard) => {
      assert.equal((await guard.fetchImage(`${url}3`, { bytesMax: MB, signal })).type, 'png')
      await refused(guard.fetchImage(`${url}4`, { bytesMax: MB, signal }), /redirects/)
    },
  )
})

test('a caller who leaves stops the fetch, with the reason of the signal', async () => {
  const closed = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  await serving(
    (request) => {
      request.socket.on('close', () => closed.resolve())
      asked.resolve()
    },
    async (url, guard) => {
      const controller = new AbortController()
      const fetching = assert.rejects(
        guard.fetchImage(url, { bytesMax: MB, signal: controller.signal }),
        (error) => error === 'left',
      )
      await asked.promise
      controller.abort('left')
      await fetching
      await closed.promise
    },
  )
})

test('a post sends its body, does not follow redirects, and is guarded like the rest', async () => {
  const seen: string[] = []
  await serving(
    async (request, response) => {
      for await (const chunk of request) seen.push(`${request.headers['x-sig']} ${chunk}`)
      response.writeHead(302, { location: '/elsewhere' }).end()
    },
    async (url, guard) => {
      assert.deepEqual(await guard.post(url, '{"a":1}', { 'x-sig': 's' }, { signal }), { status: 302 })
      assert.deepEqual(seen, ['s {"a":1}'])
      const strict = createGuardedFetch({ world: realWorld })
      await assert.rejects(strict.post(url, '', {}, { signal }), { kind: 'upstream_failed' })
    },
  )
})

test('a download hands over every piece in order, holds back when told, and passes on the writer’s own error', async () => {
  const file = Buffer.alloc(3 * MB, 'abc')
  await serving(
    (_request, response) => response.writeHead(200, { 'content-type': 'video/mp4' }).end(file),
    async (url, guard) => {
      const pieces: Buffer[] = []
      const write = async (chunk: Buffer) => {
        await new Promise((resolve) => setImmediate(resolve))
        pieces.push(chunk)
      }
      const { bytes, contentType } = await guard.download(url, write, { bytesMax: 3 * MB, signal })
      assert.equal(bytes, file.length)
      assert.equal(contentType, 'video/mp4')
      assert.ok(Buffer.concat(pieces).equals(file))
      await assert.rejects(guard.download(url, write, { bytesMax: 3 * MB - 1, signal }), { kind: 'upstream_failed' })
      const full = new Error('no space')
      await assert.rejects(
        guard.download(url, () => Promise.reject(full), { bytesMax: 3 * MB, signal }),
        (error) => error === full,
      )
    },
  )
})
