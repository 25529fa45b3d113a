import { assert, test } from './kit.ts'
import { upgradeUnderLoad } from './upgrade-story.ts'

test('an upgrade with a column, an index and a backfill loses no call while two versions serve', async () => {
  const { calls, lost } = await upgradeUnderLoad(20_000)
  assert.deepEqual(lost, [], `of ${calls}`)
})
