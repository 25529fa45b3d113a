// Branding: what a reseller sets is what console, mails and documentation show, and nothing that they set can do harm
// or be unreadable.
import { deflateSync } from 'node:zlib'
import { freshDatabase } from '../../../../test/database.ts'
import { assert, isOff, needs, started, startGateway, test, until } from '../../../../test/gateway.ts'
import { startMailServer } from '../../../../test/mail-server.ts'
import { contrast } from '../../../identity/branding/branding.ts'
import type { BrandingView } from '../../../identity/branding/views.ts'

const post = started(startMailServer)
const fresh = started(freshDatabase)
const g = started(() =>
  startGateway({ database: fresh, env: { TOLLGATE_SMTP_URL: post.url, TOLLGATE_MAIL_FROM: 'hello@gateway.example' } }),
)

const put = (input: object) => g.operator<BrandingView & { message: string }>('PUT', '/branding', input)
const putLogo = (bytes: Buffer) =>
  g.operator<BrandingView & { message: string }>('PUT', '/branding/logo', { data: bytes.toString('base64') })
const read = async (path: string) => (await fetch(g.url + path)).text()

/** A PNG that any program opens. */
function png(width: number, height: number): Buffer {
  const table = Array.from({ length: 256 }, (_, n) => {
    let c = n
    for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1
    return c >>> 0
  })
  const crc = (data: Buffer) =>
    (data.reduce((c, byte) => table[(c ^ byte) & 0xff]! ^ (c >>> 8), 0xffffffff) ^ 0xffffffff) >>> 0
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type), data])
    const ends = Buffer.alloc(8)
    ends.writeUInt32BE(data.length, 0)
    ends.writeUInt32BE(crc(body), 4)
    return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)])
  }
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, 2, 0, 0, 0], 8)
  const rows = Buffer.concat(
    Array.from({ length: height }, () => Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, 0x55)])),
  )
  const magic = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  return Buffer.concat([magic, chunk('IHDR', head), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))])
}

test('name, colour, logo, support and links show in the documentation, the style sheet and the console', async () => {
  assert.equal((await g.operator<BrandingView>('GET', '/branding')).data.name, 'Tollgate')
  assert.equal(await read('/branding/style.css'), '')
  assert.equal((await fetch(`${g.url}/branding/logo`)).status, 404)
  const links = [{ label: 'Privacy <b>', url: 'https://acme.example/privacy?a="b' }]
  const sender = { name: 'Acme "AI", Inc.', address: 'noreply@acme.example' }
  const changed = await put({ name: 'Acme <AI>', color: '#7A1FA2', support: 'help@acme.example', links, sender })
  assert.equal(changed.status, 200, JSON.stringify(changed.data))
  assert.equal((await putLogo(png(120, 40))).status, 200)
  const visitor = (await (await fetch(`${g.url}/console/api/public/branding`)).json()) as { data: BrandingView }
  assert.deepEqual([visitor.data.name, visitor.data.logo?.width, 'sender' in visitor.data], ['Acme <AI>', 120, false])
  const logo = await fetch(g.url + visitor.data.logo!.url)
  assert.deepEqual(
    [logo.headers.get('content-type'), logo.headers.get('x-content-type-options')],
    ['image/png', 'nosniff'],
  )
  assert.match(logo.headers.get('content-security-policy') ?? '', /sandbox/)
  assert.deepEqual(Buffer.from(await logo.arrayBuffer()), png(120, 40))
  assert.match(await read('/branding/style.css'), /--accent: light-dark\(#7a1fa2, #[0-9a-f]{6}\)/)
  if (isOff('docs')) return
  const page = await read('/docs')
  assert.match(page, /<title>[^<]* · Acme &lt;AI&gt; docs<\/title>/)
  assert.match(page, /<h1>Acme &lt;AI&gt; documentation<\/h1>/)
  assert.ok(page.includes(`<img class="mark" src="${visitor.data.logo!.url}"`))
  assert.ok(page.includes('href="mailto:help@acme.example"') && page.includes('Privacy &lt;b&gt;'))
  assert.ok(!page.includes('<b>') && !page.includes('<AI>'))
})

test('a mail has the sender, the name and the colour; nothing of them can start a header or a tag', async () => {
  assert.equal((await g.operator('PUT', '/sign-up', { mode: 'open' })).status, 200)
  await fetch(`${g.url}/console/api/public/sign-up`, {
    method: 'POST',
    headers: { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'a@example.com' }),
  })
  const mail = await post.newest('a@example.com')
  assert.equal(mail.headers.get('from'), '"Acme \\"AI\\", Inc." <noreply@acme.example>')
  assert.equal(mail.headers.get('to'), 'a@example.com')
  assert.equal(mail.headers.get('subject'), 'Confirm your email address for Acme <AI>')
  assert.ok(
    mail.html.includes('Acme &lt;AI&gt;') && !mail.html.includes('<AI>') && mail.html.includes('background:#7a1fa2'),
  )
  assert.match(mail.html, /<img src="http:\/\/[^"]+\/branding\/logo\?v=[0-9a-f]+" alt="Acme &lt;AI&gt;"/)
  for (const name of ['Acme\r\nBcc: victim@example.com', 'A\u2028B', 'abc\u202edef', ' ', 'x'.repeat(61)])
    assert.equal((await put({ name })).status, 400, JSON.stringify(name))
  for (const address of ['a@b.example\r\nX: y', 'a@b.example, c@d.example', 'a b@c.example', 'none'])
    assert.equal((await put({ sender: { name: 'x', address } })).status, 400, address)
  for (const url of ['javascript:alert(1)', 'data:text/html,x', 'ftp://x.example'])
    assert.equal((await put({ links: [{ label: 'x', url }] })).status, 400, url)
})

test('a colour that cannot be read is refused with its contrast, and a dark one is made lighter for dark pages', async () => {
  assert.match(
    (await put({ color: '#ffcc00' })).data.message,
    /contrast is 1\.\d, and must be at least 4\.5\. Choose a darker one/,
  )
  assert.match((await put({ color: '#0e6e74', colorDark: '#0e6e74' })).data.message, /dark pages.*Choose a lighter one/)
  assert.equal((await put({ color: 'red' })).status, 400)
  assert.equal((await put({ color: '#0e6e74;}body{display:none' })).status, 400)
  for (const color of ['#000000', '#123456', '#7a1fa2', '#a00000', '#0e6e74', '#00557f']) {
    assert.equal((await put({ color })).status, 200, color)
    const css = await read('/branding/style.css')
    const of = (name: string) =>
      new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(css)!.slice(1) as [string, string]
    for (const theme of [0, 1] as const) {
      const [accent, hover, soft, on] = ['accent', 'accent-hover', 'accent-soft', 'on-accent'].map(
        (name) => of(name)[theme],
      )
      for (const [text, ground] of [
        [on, accent],
        [on, hover],
        [accent, soft],
        [accent, theme ? '#1f2a30' : '#ffffff'],
      ])
        assert.ok(contrast(text!, ground!) >= 4.5, `${color} ${theme}: ${text} on ${ground}`)
    }
  }
})

test('a logo is a PNG or a JPEG of a size that pages can bear', async () => {
  const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
  const html = Buffer.concat([Buffer.from('GIF89a'), Buffer.from('<script>alert(1)</script>')])
  for (const bytes of [
    svg,
    html,
    Buffer.from('nothing'),
    png(2001, 1),
    Buffer.concat([png(10, 10), Buffer.alloc(200_000)]),
  ])
    assert.equal((await putLogo(bytes)).status, 400)
  assert.equal((await g.operator('PUT', '/branding/logo', { data: 'not base64!' })).status, 400)
  assert.equal((await g.operator('PUT', '/branding/logo', { data: 'A'.repeat(300_000) })).status, 413)
  assert.equal((await g.operator<BrandingView>('DELETE', '/branding/logo')).data.logo, null)
  assert.equal((await fetch(`${g.url}/branding/logo`)).status, 404)
})

test('another process shows the change too', needs('docs'), async () => {
  await using other = await startGateway({ database: fresh })
  await put({ name: 'Second name' })
  await until(async () => (await (await fetch(`${other.url}/docs`)).text()).includes('Second name docs'))
})
