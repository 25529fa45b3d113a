// Foreign MCP servers from the command line: registered, chosen with a price, held back, compared, agreed to, removed.
import { commandLineOf } from '../../../../test/command-line.ts'
import { assert, started, test } from '../../../../test/kit.ts'
import { startForeignServer } from '../../../../test/mcp/foreign-server.ts'
import { startOperatorServer } from '../../../../test/operator-server.ts'

const server = started(startOperatorServer)
const foreign = started(() => startForeignServer('modern', [{ name: 'getForecast', description: 'The weather.' }]))
const { run } = commandLineOf(() => server)

test('a server is registered, a tool of it sold, and a changed tool is sold again only with --agree', async () => {
  const said = async (code: number, ...words: string[]) => {
    const ran = await run(['tool-servers', ...words])
    assert.equal(ran.code, code, ran.err + ran.out)
    return ran.out + ran.err
  }
  assert.match(await said(0, 'register', 'weather', '--url', foreign.url), /getForecast +not-chosen/)
  assert.match(
    await said(0, 'choose', 'weather', 'getForecast', '--price', 'call=0.5'),
    /listed +mcp\/weather\/getforecast/,
  )
  foreign.tools[0]!.description = 'Other words.'
  assert.match(
    await said(0, 'refresh', 'weather'),
    /changed[\s\S]*description\n {2}- The weather\.\n {2}\+ Other words\./,
  )
  assert.match(await said(1, 'choose', 'weather', 'getForecast', '--price', 'call=1'), /Give --agree to sell it so/)
  assert.match(await said(0, 'choose', 'weather', 'getForecast', '--agree'), /listed/)
  assert.match(await said(0, 'list'), /weather +http:\S+ +1 +0/)
  assert.match(await said(0, 'choose', 'weather', 'getForecast', '--off'), /off/)
  assert.match(await said(0, 'remove', 'weather'), /Removed/)
  assert.match(await said(1, 'show', 'weather'), /There is no tool server/)
})
