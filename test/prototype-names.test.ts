// Names that every object of the language inherits, where a stranger gives a name: they are names like others, and no
// fault of ours.
import { readPresets } from '../src/catalog/preset.ts'
import { ALL_ENDPOINTS } from '../src/entries.ts'
import { assert, OPERATOR_TOKEN, runs, test, testGateway } from './gateway.ts'

const NAMES = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__']
/** Of them, those for one address; those for the next are others. */
const STRIDE = runs(6, 1)
const namesFor = (place: number) => NAMES.filter((_, at) => (at + place) % STRIDE === 0)
let key: string
const g = testGateway({ isShared: true }, async () => {
  key = (await g.account()).key
})

test('no operator’s resource fails by such a name in its address, its query or its body', async () => {
  const { paths } = (await (await g.call('/openapi.json', undefined)).json()) as { paths: Record<string, object> }
  const routes = Object.entries(paths).filter(([path]) => path.startsWith('/admin/'))
  assert.ok(routes.length > 40, 'the document has them')
  const wrong: string[] = []
  for (const [place, [path, methods]] of routes.entries())
    for (const method of Object.keys(methods).map((one) => one.toUpperCase()))
      for (const name of namesFor(place))
        for (const query of ['', `?${name}=1`]) {
          const body = method === 'GET' ? undefined : `{${JSON.stringify(name)}:{${JSON.stringify(name)}:1}}`
          const address = path.replaceAll(/\{\w+\}/g, name) + query
          const answer = await g.call(address, OPERATOR_TOKEN, body, { method })
          if (answer.status >= 500) wrong.push(`${method} ${address}: ${answer.status} ${await answer.text()}`)
          else await answer.body?.cancel()
        }
  assert.deepEqual(wrong, [])
})

test('no catalog and no connection fails by such a name of a member, a vendor, a model or a family', async () => {
  const { input } = g.gateway.catalog.current
  const [preset] = (await readPresets()).filter(({ name }) => name === 'openai')
  const wrong: string[] = []
  const send = async (method: string, path: string, body: string) => {
    const answer = await g.call(`/admin/v1${path}`, OPERATOR_TOKEN, body, { method })
    const told = await answer.text()
    if (answer.status >= 500) wrong.push(`${method} ${path} ${body.slice(0, 80)}: ${told}`)
  }
  for (const name of NAMES) {
    const member = `${JSON.stringify(name)}:{"name":"x","type":"text","family":${JSON.stringify(name)}}`
    const whole = JSON.stringify(input)
    await send('PUT', '/catalog?dryRun=1', `{${member},${whole.slice(1)}`)
    for (const shelf of ['vendors', 'models', 'families', 'endpoints'])
      await send('PUT', '/catalog?dryRun=1', whole.replace(`"${shelf}":{`, `"${shelf}":{${member},`))
    const models = [{ model: name }]
    await send('POST', '/connect?dryRun=1', JSON.stringify({ preset: preset?.name, models }))
    const own = { vendor: name, formats: ['openai-chat'], baseUrl: 'https://vendor.example/v1' }
    await send('POST', '/connect?dryRun=1', JSON.stringify({ ...own, models }))
    await send('POST', '/connect/test', JSON.stringify({ preset: name }))
  }
  assert.deepEqual(wrong, [])
})

test('no endpoint fails by such a name of a model, a member, a parameter or an id', async () => {
  const wrong: string[] = []
  for (const [place, spec] of ALL_ENDPOINTS.entries())
    for (const path of [spec.path, ...spec.aliases])
      for (const name of namesFor(place)) {
        const address = `${path.replaceAll(/\{\w+\}/g, name)}?${name}=${name}`
        const body = `{"model":"${name}",${JSON.stringify(name)}:{},"input":"a","messages":[{"role":"${name}","content":"a"}]}`
        const answer = await g.call(address, key, spec.method === 'POST' ? body : undefined, { method: spec.method })
        const told = await answer.text()
        if (answer.status >= 500) wrong.push(`${spec.method} ${address}: ${answer.status} ${told.slice(0, 200)}`)
      }
  assert.deepEqual(wrong, [])
})
