// The operator's hook for sign-ups: it is told who requests one, signed like webhooks, and answers yes or no.
import * as z from 'zod'
import type { CoreParts } from '../../../extension.ts'
import { signedHeaders } from '../../../jobs/webhook.ts'
import { Fault } from '../../../kernel/fault.ts'
import { newId } from '../../../kernel/world.ts'
import type { GuardedFetch } from '../../../upstream/guard.ts'
import type { Challenge } from './sign-up.ts'

export interface ChallengeDeps extends Pick<CoreParts, 'secrets' | 'world' | 'log'> {
  readonly guard: Pick<GuardedFetch, 'request' | 'check'>
}

const ANSWER_BYTES_MAX = 16_384
const DEADLINE_MS = 5_000
const REASON_CHARS_MAX = 200

const verdict = z.discriminatedUnion('action', [
  z.object({ action: z.literal('allow') }),
  z.object({ action: z.literal('block'), reason: z.string().default('') }),
])

export function createChallenge({ guard, log, ...deps }: ChallengeDeps): Challenge {
  const deadline = () => AbortSignal.timeout(DEADLINE_MS)

  async function answerOf(url: string, body: string) {
    const headers = signedHeaders(deps, { account: '', id: `chk_${newId(deps.world)}`, body })
    const call = { method: 'POST' as const, url, headers, body }
    const reply = await guard.request(call, { bytesMax: ANSWER_BYTES_MAX, signal: deadline() })
    if (reply.status !== 200) throw new Error(`the hook answered with status ${reply.status}`)
    return verdict.parse(JSON.parse(reply.body.toString('utf8')))
  }

  return {
    check: (url) => guard.check(url, { signal: deadline() }),
    async ask(url, about) {
      const body = JSON.stringify({ type: 'sign-up.check', ...about })
      const said = await answerOf(url, body).catch((error: unknown) => {
        log.error({ err: error }, 'the hook for sign-ups did not answer yes or no, so nobody can sign up')
        throw new Fault('unavailable', { retryAfterSeconds: 30 })
      })
      if (said.action === 'allow') return
      const reason = said.reason.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ').slice(0, REASON_CHARS_MAX)
      throw new Fault('access_denied', { message: reason.toWellFormed().trim() || 'This sign-up was not accepted.' })
    },
  }
}
