import type http from 'node:http'
import { fasterWorld } from '../../test/faster-world.ts'
import { assert, listen, test } from '../../test/kit.ts'
import { Fault } from '../kernel/fault.ts'
import { realWorld } from '../kernel/world.ts'
import { createGuardedFetch, type GuardOptions, IMAGE_REFUSED } from './guard.ts'

const signal = new AbortController().signal
const MB = 1_048_576

/** A 1×1 PNG header and whatever follows: enough for what looks at headers only. */
function png(bytes: number, width = 1, height = 1): Buffer {
  const file = Buffer.alloc(bytes)
  Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').copy(file)
  file.writeUInt32BE(width, 16)
  file.writeUInt32BE(height, 20)
  return file
}

async function serving(
  listener: http.RequestListener,
  use: (url: string, guard: ReturnType<typeof createGuardedFetch>) => Promise<void>,
  options: Partial<GuardOptions> = {},
): Promise<void> {
  const { host, close } = await listen(listener)
  try {
    await use(`http://${host}/`, createGuardedFetch({ world: realWorld, allow: [host], ...options }))
  } finally {
    await close()
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
        const image = await guard.fetchImage(url, { account: 'a', bytesMax: 300_000, signal })
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
          const fetching = guard.fetchImage(url, { account: 'a', bytesMax: 20 * MB, signal })
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
      await refused(guard.fetchImage(url, { account: 'a', bytesMax: 20 * MB, signal }), /too large/)
      assert.ok(process.memoryUsage().rss - rss < 64 * MB)
    },
  )
  assert.ok(sent < 40 * MB, `${sent}`)
})

test('what is encoded, cut short, no picture, an SVG, too many pixels or an error page is refused', async () => {
  const answers: ReadonlyArray<readonly [RegExp, (response: http.ServerResponse) => void]> = [
    [/encoded/, (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(png(100))],
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
      (url, guard) => refused(guard.fetchImage(url, { account: 'a', bytesMax: MB, signal }), why),
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
  const limits = { world: fasterWorld(5) }
  await serving(
    () => {},
    (url, guard) => refused(guard.fetchImage(url, { account: 'a', bytesMax: MB, signal }), /timeout/),
    limits,
  )
  await serving(
    (_request, response) => trickle(response, 1),
    (url, guard) => refused(guard.fetchImage(url, { account: 'a', bytesMax: 20 * MB, signal }), /too slow/),
    limits,
  )
  await serving(
    (_request, response) => trickle(response, 10_000),
    (url, guard) => refused(guard.fetchImage(url, { account: 'a', bytesMax: 20 * MB, signal }), /timeout/),
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
      assert.equal((await guard.fetchImage(`${url}3`, { account: 'a', bytesMax: MB, signal })).type, 'png')
      await refused(guard.fetchImage(`${url}4`, { account: 'a', bytesMax: MB, signal }), /redirects/)
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
        guard.fetchImage(url, { account: 'a', bytesMax: MB, signal: controller.signal }),
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
      response.writeHead(302, { location: '/elsewhere' }).end(`no ${'x'.repeat(100_000)}`)
    },
    async (url, guard) => {
      const answer = await guard.post(url, '{"a":1}', { 'x-sig': 's' }, { account: 'a', signal })
      assert.deepEqual(answer, { status: 302, excerpt: `no ${'x'.repeat(1_021)}` })
      assert.deepEqual(seen, ['s {"a":1}'])
      const strict = createGuardedFetch({ world: realWorld })
      await assert.rejects(strict.post(url, '', {}, { account: 'a', signal }), { kind: 'upstream_failed' })
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
