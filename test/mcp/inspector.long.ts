// The protocol's own inspector, its command line: what people try a server with first. That is a process for each call,
// two seconds of a processor, so that it calls a sample: what differs from tool to tool, the schemas, it reads all of.
import { assert, before, test, testGateway } from '../gateway.ts'
import { installed, runProgram } from '../sdk/cache.ts'

const INSPECTOR = '@modelcontextprotocol/inspector@2.12.0'

let key: string
const g = testGateway()
before(async () => {
  key = (await g.account()).key
})

test('the inspector lists the tools without a complaint about their schemas, and calls them', async (t) => {
  const program = await installed(t, INSPECTOR, '@modelcontextprotocol/inspector/clients/launcher/build/index.js')
  if (program === undefined) return
  const inspect = async (...args: string[]) => {
    const about = ['--cli', `${g.url}/mcp`, '--transport', 'http', '--header', `Authorization: Bearer ${key}`]
    const { out, err, code } = await runProgram(process.execPath, [program, ...about, ...args], {
      env: { PATH: process.env.PATH, HOME: g.config.TOLLGATE_DATA },
      timeoutMs: 60_000,
    })
    assert.equal(code, 0, `${args.join(' ')}: ${out}\n${err}`)
    return JSON.parse(out)
  }
  const [list, visits, models, prompt] = await Promise.all([
    inspect('--strict', '--method', 'tools/list'),
    inspect('--method', 'tools/call', '--tool-name', 'website_visits', '--tool-arg', 'keys=example.com'),
    inspect('--method', 'resources/read', '--uri', 'tollgate://models'),
    inspect('--method', 'prompts/get', '--prompt-name', 'brief_handle', '--prompt-args', 'handle=jack'),
  ])
  assert.equal(list.tools.length, 39)
  assert.ok(visits.structuredContent.Data['example.com'].TotalVisits > 0)
  assert.match(models.contents[0].text, /alpha-5\.4/)
  assert.match(prompt.messages[0].content.text, /jack/)
})
