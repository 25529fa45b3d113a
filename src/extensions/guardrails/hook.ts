// An operator's hook: texts are sent to the operator's address, signed like webhooks, and the answer allows, blocks or
// replaces them.
import * as z from 'zod'
import type { CoreParts } from '../../extension.ts'
import { signedHeaders } from '../../jobs/webhook.ts'
import { Fault } from '../../kernel/fault.ts'
import { newId } from '../../kernel/world.ts'
import type { Phase } from '../../pipeline/hooks.ts'
import type { GuardedFetch } from '../../upstream/guard.ts'
import type { CheckedCall, Verdict } from './checks.ts'
import type { GuardrailRule } from './rules.ts'

const REASON_CHARS_MAX = 200
/** Beside the texts that come back. */
const ANSWER_BYTES = 65_536

const answer = z.discriminatedUnion('action', [
  z.object({ action: z.literal('allow') }),
  z.object({ action: z.literal('block'), reason: z.string().default('') }),
  z.object({ action: z.literal('replace'), texts: z.array(z.string()) }),
])

export interface HookDeps extends Pick<CoreParts, 'secrets' | 'world'> {
  readonly guard: Pick<GuardedFetch, 'request'>
}

export type Hooks = ReturnType<typeof createHooks>

export function createHooks(deps: HookDeps) {
  return {
    /** Rejects if the hook does not answer in time, or not as it should. */
    async ask(
      rule: string,
      { url, deadlineMs }: NonNullable<GuardrailRule['hook']>,
      { on, texts, about }: { readonly on: Phase; readonly texts: readonly string[]; readonly about: CheckedCall },
    ): Promise<Verdict> {
      const { requestId, principal, endpoint, labels, product, signal } = about
      const { accountId: account, keyId: key } = principal
      const body = JSON.stringify({
        type: 'guardrail.check',
        rule,
        on,
        requestId,
        account,
        key,
        model: product,
        endpoint,
        labels: labels ?? {},
        texts,
      })
      // The secret of the empty account is the operator's.
      const headers = signedHeaders(deps, { account: '', id: `chk_${newId(deps.world)}`, body })
      // A replacement may be longer than what it replaces.
      const bytesMax = ANSWER_BYTES + 4 * body.length
      const reply = await deps.guard.request({ method: 'POST', url, headers, body }, { bytesMax, signal, deadlineMs })
      if (reply.status !== 200) throw unusable(`the hook answered with status ${reply.status}`)
      return read(reply.body, texts.length)
    },
  }
}

function read(body: Buffer, count: number): Verdict {
  const said = answer.safeParse(parsed(body))
  if (!said.success) throw unusable('the hook’s answer has another form')
  const { data } = said
  if (data.action === 'replace' && data.texts.length !== count) throw unusable('the hook gave another number of texts')
  if (data.action !== 'block') return data
  const reason = data.reason
    .replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ')
    .slice(0, REASON_CHARS_MAX)
    .toWellFormed()
    .trim()
  return { action: 'block', reason }
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}

const unusable = (why: string) => new Fault('upstream_failed', { internal: { why } })
