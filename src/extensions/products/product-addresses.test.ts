// Parameters of products that stand in an address: whatever a caller or an agent writes there, it is one part of it.
import { assert, listen, needs, started, test, testGateway } from '../../../test/gateway.ts'

const seen: string[] = []
const vendor = started(() =>
  listen((request, response) => {
    seen.push(request.url ?? '')
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
  }),
)

const FILE = {
  title: 'A file',
  route: 'GET /files/{name}',
  vendorPath: 'files/{name}/{part}',
  params: {
    name: { kind: 'text', in: 'path', required: true, example: 'a' },
    part: { kind: 'text', required: true, pattern: '^[a-z/%0-9]+$', example: 'a/b' },
    'x-note': { kind: 'text', in: 'header', example: 'a' },
  },
}

const g = testGateway({
  catalog(document) {
    document.vendors.disk = { baseUrl: vendor.url }
    document.products = { disk: { title: 'Disk', operations: { file: FILE } } }
    document.endpoints['disk/file'] = {
      routes: [{ vendor: 'disk', protocol: 'http-api' }],
      pricing: { unit: 'credits', tiers: [{ call: '1' }] },
    }
  },
})

const HOSTILE = 'a/b a\\b a\nb a\0b a\u0085b a..;b ..; %c0%af x%5C %252fx %0a %2e%2e%3b'.split(' ')

test(
  'what stands in an address is one part of it in every encoding, unless its field allows more, for callers and agents alike',
  needs('agents'),
  async () => {
    const { key } = await g.account()
    const byHttp = async (name: string, part: string) => {
      const answer = await g.call(`/v1/disk/files/${name}?part=${encodeURIComponent(part)}`, key)
      await answer.text()
      return answer.status === 200
    }
    const byTool = async (given: object) => {
      const params = { name: 'disk_file', arguments: { name: 'a', part: 'a', ...given } }
      const headers = { accept: 'application/json, text/event-stream' }
      const answer = await g.call('/mcp', key, { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, { headers })
      const text = await answer.text()
      if (text.includes('"ok":true')) return true
      assert.match(text, /must not contain|must be/, JSON.stringify(given))
      return false
    }
    assert.ok(await byHttp('caf%C3%A9%20100%25', 'a/b'))
    assert.ok(await byTool({ name: 'café 100%', part: 'a/b', 'x-note': 'é' }))
    assert.deepEqual(new Set(seen), new Set(['/files/caf%C3%A9%20100%25/a%2Fb']))
    const passed: string[] = []
    for (const text of HOSTILE) {
      const [once, twice] = [encodeURIComponent(text), encodeURIComponent(encodeURIComponent(text))]
      for (const one of [once, twice]) if (await byHttp(one, 'a')) passed.push(one)
      for (const name of [text, once, twice]) if (await byTool({ name })) passed.push(`tool ${name}`)
    }
    for (const part of ['a%0ab', 'a%5cb', 'a%252e%252e%253bb', 'a%c0%afb'])
      if ((await byHttp('a', part)) || (await byTool({ part }))) passed.push(part)
    for (const note of ['a\r\nx-key: mine', 'a\0b', '日本']) if (await byTool({ 'x-note': note })) passed.push(note)
    assert.deepEqual(passed, [])
    assert.equal(seen.length, 2, 'nothing else came to the vendor')
  },
)
