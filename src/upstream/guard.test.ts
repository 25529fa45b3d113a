import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { fasterWorld } from '../../test/faster-world.ts'
import { after, assert, before, listen, started, test } from '../../test/kit.ts'
import { Fault } from '../kernel/fault.ts'
import { realWorld } from '../kernel/world.ts'
import { ADDRESS_REFUSED, createGuardedFetch, IMAGE_REFUSED } from './guard.ts'

const signal = new AbortController().signal
const MB = 1_048_576
/** In the range of public addresses, but given to nobody. */
const NOBODY = '2d00::1'

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
const redirector = started(() =>
  listen((request, response) => {
    const to = new URL(request.url!, 'http://x').searchParams
    response
      .writeHead(Number(to.get('status')), { location: to.get('to')!.replace(/[^!-~]/g, encodeURIComponent) })
      .end()
  }),
)

before(async () => {
  canary = net.createServer((socket) => {
    accepted++
    socket.on('error', () => {}).end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
  })
  // One listener for every local address: 127.0.0.1, ::1 and 0.0.0.0 all arrive here.
  canary.listen(0, '::')
  await once(canary, 'listening')
  canaryPort = (canary.address() as AddressInfo).port
})
after(() => {
  canary.close()
})

const PATIENT = { connectMs: 120_000, firstByteMs: 120_000, totalMs: 120_000 }
type Way = 'direct' | '302' | '307' | 'a DNS name' | 'rebinding'

async function refusalOf(way: Way, url: string, address: string): Promise<Fault> {
  let asked = 0
  const guard = createGuardedFetch({
    world: realWorld,
    ports: [canaryPort],
    allow: [redirector.host],
    // Nobody answers a rebinding; what answers may take as long as a busy machine needs.
    imageLimits: way === 'rebinding' ? { connectMs: 500 } : PATIENT,
    async resolve() {
      asked++
      return way === 'rebinding' && asked === 1 ? [NOBODY] : [address]
    },
  })
  const from = {
    direct: url,
    '302': `http://${redirector.host}/?status=302&to=${encodeURIComponent(url)}`,
    '307': `http://${redirector.host}/?status=307&to=${encodeURIComponent(url)}`,
    'a DNS name': `http://pictures.example.com:${canaryPort}/`,
    rebinding: `http://pictures.example.com:${canaryPort}/`,
  }[way]
  try {
    await guard.fetchImage(from, { account: 'a', bytesMax: 20 * MB, signal })
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
    await assert.rejects(guard.fetchImage(url, { account: 'a', bytesMax: 100, signal }))
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
    await assert.rejects(
      guard.fetchImage(url, { account: 'a', bytesMax: 100, signal }),
      { message: IMAGE_REFUSED },
      url,
    )
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
  const guard = createGuardedFetch({ world: fasterWorld(20), resolve: () => new Promise(() => {}) })
  await assert.rejects(guard.check('https://slow.example.com/', { signal }), { message: ADDRESS_REFUSED })
})
