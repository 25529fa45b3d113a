// The upgrade of test/upgrade.test.ts on a million calls. On this machine alone it may be measured how long a call
// waits at most.
import { assert, test } from '../kit.ts'
import { upgradeUnderLoad } from '../upgrade-story.ts'

test('an upgrade on a million calls loses none and keeps none waiting for two seconds', async (t) => {
  const { calls, lost, longestMs, longestIn } = await upgradeUnderLoad(1_000_000)
  t.diagnostic(`${calls} calls, the longest ${Math.round(longestMs)} ms, while ${longestIn}`)
  assert.deepEqual(lost, [], `of ${calls}`)
  assert.ok(longestMs < 2_000, `${longestMs} ms while ${longestIn}`)
})
