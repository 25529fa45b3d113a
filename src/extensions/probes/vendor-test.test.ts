// The test of a vendor, without a gateway around it: faults of certificates by a real TLS server, and what is asked of
// vendors whose least call is not small.
import type { RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { startSandbox } from '../../../sandbox/server.ts'
import { makeAuthority, makeCertificate } from '../../../test/certificate.ts'
import { after, assert, listen, pluck, test } from '../../../test/kit.ts'
import { Fault } from '../../kernel/fault.ts'
import { realWorld as world } from '../../kernel/world.ts'
import type { ProtocolName } from '../../meter/kind.ts'
import { createUpstream } from '../../upstream/exchange.ts'
import { testVendor } from './vendor-test.ts'

const upstream = createUpstream({ world })
const closers: { close(): unknown }[] = [upstream]
after(() => Promise.all(closers.map((one) => one.close())))

async function serve(server: Parameters<typeof listen>[0]): Promise<string> {
  const listening = await listen(server)
  closers.push(listening)
  return listening.host
}

const answering =
  (status: number, body: object): RequestListener =>
  (_req, res) =>
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

const tryOut = (protocol: ProtocolName, baseUrl: string, model = 'm') =>
  testVendor({ protocol, baseUrl, secret: 'sk-0123456789abcdef', headers: {}, model }, undefined, {
    upstream,
    world,
    added: [],
    logins: { open: () => assert.fail('no vendor here has a login') },
    isForeign: false,
  })

test('a certificate that has expired, is not valid yet, is for somebody else or from nobody who is trusted is said to be so', async () => {
  const trusted = makeAuthority('The authority of this test')
  const before = getCACertificates('default')
  setDefaultCACertificates([...before, trusted.certificate])
  try {
    const weeks = { address: '127.0.0.1', fromDays: -30, toDays: 30 }
    const cases: [certificate: ReturnType<typeof makeCertificate>, said: RegExp][] = [
      [makeCertificate(trusted, weeks), /^It lists 1 models/],
      [
        makeCertificate(trusted, { ...weeks, fromDays: -60, toDays: -1 }),
        /^TLS: the certificate of 127\S+ has expired/,
      ],
      [makeCertificate(trusted, { ...weeks, fromDays: 2 }), /^TLS: the certificate of 127\S+ is not valid yet/],
      [makeCertificate(trusted, { ...weeks, address: '10.1.2.3' }), /^TLS: the certificate there is not for 127/],
      [
        makeCertificate(makeAuthority('A stranger'), weeks),
        /^TLS: the certificate of 127\S+ is not signed by a trusted authority/,
      ],
    ]
    for (const [certificate, said] of cases) {
      const host = await serve(createSecureServer(certificate, answering(200, { data: [{ id: 'm' }] })))
      const { ok, message } = await tryOut('openai-chat', `https://${host}`)
      assert.match(message, said)
      assert.equal(ok, !message.startsWith('TLS'))
    }
  } finally {
    setDefaultCACertificates(before)
  }
})

test('vendors of films, pictures and data are asked what costs nothing, and the test says what it did and what not', async () => {
  const sandbox = await startSandbox({ world, speed: 1000 })
  closers.push(sandbox)
  const visits = 'siteanalytics/websites/visits'
  const cases: [ProtocolName, vendor: string, steps: string[], said: RegExp, model?: string][] = [
    ['video-task', 'ark', ['check'], /shows its tasks, .* No film was ordered/],
    ['social-v2', 'social', ['check'], /without parameters, .* No row was bought/, 'socialapi'],
    ['site-analytics', 'analytics', ['check'], /without parameters, .* No row was bought/, visits],
    ['openai-images', 'openai', ['models', 'check'], /without a prompt, .* No picture was ordered/],
  ]
  const strangers = await serve(answering(401, { error: { message: 'Who are you?' } }))
  const lost = await serve(answering(404, {}))
  for (const [protocol, vendor, steps, said, model] of cases) {
    const made = await tryOut(protocol, `${sandbox.url}/${vendor}`, model)
    assert.equal(made.ok, true, made.message)
    assert.deepEqual(pluck(made.steps, 'what'), steps)
    assert.match(made.message, said)
    const refused = await tryOut(protocol, `http://${strangers}`, model)
    assert.equal(refused.ok, false)
    assert.match(refused.message, /does not accept the credential. It says: “Who are you\?”/)
    assert.match((await tryOut(protocol, `http://${lost}`, model)).message, /nothing at this address \(404\)/)
  }
})

test('the login of an account’s own key is opened as a stranger’s, so that no address inside it is called', async () => {
  const asked: unknown[] = []
  const target = {
    protocol: 'gemini',
    baseUrl: 'https://vertex.example',
    secret: '{}',
    headers: {},
    model: 'm',
  } as const
  await testVendor({ ...target, auth: { google: {} } }, undefined, {
    upstream,
    world,
    added: [],
    isForeign: true,
    logins: {
      open(_login, { isForeign }) {
        asked.push(isForeign)
        throw new Fault('upstream_unavailable')
      },
    },
  })
  assert.ok(asked.length > 0 && asked.every((one) => one === true), JSON.stringify(asked))
})

test('a token of a login that ended early is replaced once, and the test goes on with the next', async () => {
  const tokens = ['early', 'next']
  const server: RequestListener = (req, res) => {
    const isNext = req.headers.authorization === 'Bearer next'
    answering(isNext ? 200 : 401, { data: [{ id: 'm' }] })(req, res)
  }
  const target = {
    protocol: 'openai-chat',
    baseUrl: `http://${await serve(server)}`,
    secret: '{}',
    headers: {},
    model: 'm',
  } as const
  const { ok, message } = await testVendor({ ...target, auth: { google: {} } }, undefined, {
    upstream,
    world,
    added: [],
    isForeign: false,
    logins: { open: () => ({ token: tokens[0] ?? '', drop: () => tokens.length > 1 && tokens.shift() !== undefined }) },
  })
  assert.deepEqual([ok, message], [true, 'It lists 1 models.'])
})
