// The official client calls every tool by the example that its description shows.
import { assert, before, isOff, test, testGateway } from '../../../test/gateway.ts'
import { connect, ERAS } from '../../../test/mcp/client.ts'

let key: string
const g = testGateway()
before(async () => {
  key = (await g.account()).key
})

for (const era of ERAS)
  test(`the official client calls every tool by its own example (${era})`, async () => {
    const client = await connect(g.url, key, { era })
    const { tools } = await client.listTools()
    assert.equal(tools.length, isOff('ocr') ? 38 : 39)
    let job: unknown
    for (const { name, description = '' } of tools) {
      const [, shown = '{}'] = /Example: (\{.*\})\./.exec(description) ?? []
      const given = JSON.parse(shown) as Record<string, unknown>
      const isFollowing = name === 'get_video' || name === 'wait_for_video'
      const args = isFollowing ? { job_id: job } : 'id' in given ? { ...given, id: '49278066' } : given
      const result = await client.callTool({ name, arguments: args })
      const structured = result.structuredContent as Record<string, unknown> | undefined
      assert.ok(!result.isError && structured !== undefined, `${name}: ${JSON.stringify(result.content)}`)
      assert.match(String(result._meta?.['tollgate/requestId']), /^req_/)
      if (name === 'create_video') job = structured.jobId
      if (name === 'wait_for_video') assert.equal(structured.status, 'COMPLETED')
    }
    await client.close()
  })
