// Why a call ended as it did: what went wrong in a sentence, what to do about it, and where its time went.
import { formatMs } from '../format.ts'
import { Link } from '../router.tsx'
import { useMay } from '../session.tsx'
import { Card, Note } from '../ui/page.tsx'
import type { Attempt, UsageDetail } from '../wire.ts'
import { faultAdvice, faultPage, faultText, faultTitle } from './fault-words.ts'

const BLAMES = { caller: 'Cause: your request.', vendor: 'Cause: the vendor.', gateway: 'Cause: this gateway.' }

const STOPS: Record<NonNullable<Attempt['stopped']>, string> = {
  rejected: 'Another vendor would reject the same request, so none was tried.',
  exhausted: 'There was no other route.',
  timeout: 'There was no time left for another attempt.',
  client_closed: 'The caller had disconnected.',
  hedge_lost: 'Another vendor was faster, so this attempt was aborted and not charged.',
  interrupted: 'The answer had already begun, so it could not be started again.',
}

/** The last attempt that failed, which decided the end. */
const failedLast = (call: UsageDetail) => call.attemptLog?.attempts.findLast(({ fault }) => fault !== null)

export function Verdict({ call }: { call: UsageDetail }) {
  const seesVendors = useMay()('vendors:read')
  const fault = call.attemptLog?.fault
  const name = fault?.name ?? call.fault
  const attempt = failedLast(call)
  if (!name)
    return (
      <>
        {call.status >= 400 || attempt ? <Survived call={call} /> : null}
        <AboveHold call={call} />
        <Guarded call={call} />
        <Decided call={call} />
      </>
    )
  const advice = faultAdvice(name)
  return (
    <Card title="What went wrong">
      <p className="verdict-line">{fault?.message ?? faultText(name) ?? faultTitle(name)}</p>
      {attempt ? (
        <p>
          {describeAttempt(attempt)} {attempt.stopped ? STOPS[attempt.stopped] : ''}
        </p>
      ) : null}
      <p className="muted">
        {fault ? `${BLAMES[fault.blame]} ` : ''}
        <a href={faultPage(name)}>
          {faultTitle(name)}
          {fault ? `, code ${fault.code}` : ''}
        </a>
      </p>
      {advice ? (
        <p>
          <b>What to do:</b> {advice}
        </p>
      ) : null}
      {seesVendors && attempt ? <ForOperators attempt={attempt} /> : null}
      <AboveHold call={call} />
      <Guarded call={call} />
      <Decided call={call} />
    </Card>
  )
}

/** A hold is the most that a call can cost, so this is a fault of the gateway or of its catalog. */
function AboveHold({ call: { attemptLog } }: { call: UsageDetail }) {
  return attemptLog?.aboveHold ? (
    <Note tone="warn">The call used more than was held for it: {attemptLog.aboveHold}</Note>
  ) : null
}

/** Why the call went where it did. */
function Decided({ call: { attemptLog } }: { call: UsageDetail }) {
  return attemptLog?.decided ? <Note>Routing: {attemptLog.decided.join(' ')}</Note> : null
}

/** What vendors say about their own accounts is nobody else's business. */
function ForOperators({ attempt }: { attempt: Attempt }) {
  if (!attempt.vendorError && !attempt.fix) return null
  return (
    <Note tone="warn">
      {attempt.vendorError ? <p>The vendor said: “{attempt.vendorError}”</p> : null}
      {attempt.fix ? (
        <p>
          You need to fix this: {attempt.fix}. <Link to="/operator/vendors">Vendors</Link>
        </p>
      ) : null}
    </Note>
  )
}

const DID = {
  redacted: 'redacted texts in',
  replaced: 'replaced texts of',
  blocked: 'blocked',
  unchecked: 'was not available to check',
} as const

function Guarded({ call }: { call: UsageDetail }) {
  const said = call.attemptLog?.guardrails?.map(
    ({ rule, on, did, times }) => `“${rule}” ${DID[did]} the ${on}${times > 1 ? ` (${times} times)` : ''}.`,
  )
  return said ? <Note>Guardrails: {said.join(' ')}</Note> : null
}

function Survived({ call }: { call: UsageDetail }) {
  const failed = call.attemptLog?.attempts.filter(({ fault }) => fault !== null) ?? []
  const cutAt = call.attemptLog?.cutAtTokens
  if (cutAt !== undefined)
    return (
      <Note>
        The response ended at {cutAt} output tokens: the balance or a spending limit covered no more. Add credits, or
        send <code>max_tokens</code> to choose the length yourself.
      </Note>
    )
  if (failed.length === 0) return null
  return (
    <Note>
      The call needed more than one attempt: {failed.map(describeAttempt).join(' ')} The next one{' '}
      {call.status < 400 ? 'answered' : 'ended it'}.
    </Note>
  )
}

function describeAttempt(attempt: Attempt): string {
  const by = attempt.credential ? ` (${attempt.credential})` : ''
  const model = attempt.product ? ` for ${attempt.product}` : ''
  const who = `${attempt.vendor ? `${attempt.vendor}${by}` : `The vendor of route ${attempt.route}`}${model}`
  if (attempt.skipped) return `${who} was skipped${attempt.cause ? `: ${attempt.cause}` : ''}.`
  if (attempt.deadlineMs !== undefined)
    return `${who} had not answered after ${formatMs(attempt.deadlineMs)}${attempt.phase ? ` (${PHASES[attempt.phase] ?? attempt.phase})` : ''}.`
  const cause = attempt.cause ? ` (${attempt.cause})` : ''
  if (attempt.status !== null) return `${who} answered HTTP ${attempt.status}${cause} after ${formatMs(attempt.ms)}.`
  if (attempt.phase === 'connect') return `${who} could not be reached${cause}.`
  if (attempt.phase) return `${who} failed in ${PHASES[attempt.phase] ?? attempt.phase}${cause}.`
  return attempt.fault ? `${who} failed${cause}: ${faultTitle(attempt.fault)}.` : `${who} answered.`
}

export const PHASES: Readonly<Record<string, string>> = {
  connect: 'connecting',
  'first-byte': 'waiting for the first byte',
  'first-token': 'waiting for the first token',
  idle: 'waiting for the next piece',
  body: 'the middle of the answer',
  total: 'the time for the whole call',
}

interface Span {
  name: string
  from: number
  to: number
  note?: string
  tone: 'calm' | 'busy' | 'good' | 'bad'
}

/** From the arrival of the request to its last byte, each stretch to scale. */
export function Waterfall({ call }: { call: UsageDetail }) {
  const spans = spansOf(call)
  const end = Math.max(1, ...spans.map(({ to }) => to))
  return (
    <Card title="Where the time went" lead={`${formatMs(call.durationMs)} from the request to the last byte.`}>
      <ol className="waterfall">
        {spans.map((span, index) => (
          <li key={index}>
            <span className="waterfall-name">
              {span.name}
              {span.note ? <span className="cell-sub">{span.note}</span> : null}
            </span>
            <span className="waterfall-track" aria-hidden="true">
              <span
                className={`tone-${span.tone}`}
                style={{
                  left: `${(span.from / end) * 100}%`,
                  width: `${Math.max(0.6, ((span.to - span.from) / end) * 100)}%`,
                }}
              />
            </span>
            <span className="waterfall-ms">{formatMs(span.to - span.from)}</span>
          </li>
        ))}
      </ol>
    </Card>
  )
}

function spansOf(call: UsageDetail): Span[] {
  const { attemptLog, firstByteMs, durationMs } = call
  const spans: Span[] = []
  const held = attemptLog?.heldMs ?? null
  if (held !== null) spans.push({ name: 'Admission and hold', from: 0, to: held, tone: 'calm' })
  for (const attempt of attemptLog?.attempts ?? []) {
    if (attempt.queuedMs)
      spans.push({
        name: 'Queue',
        from: Math.max(0, attempt.startMs - attempt.queuedMs),
        to: attempt.startMs,
        tone: 'calm',
      })
    spans.push({
      name: `${attempt.vendor ?? `Route ${attempt.route}`}${attempt.product ? `, ${attempt.product}` : ''}${attempt.skipped ? ', skipped' : ''}`,
      from: attempt.startMs,
      to: attempt.startMs + attempt.ms,
      note: attempt.skipped
        ? (attempt.cause ?? '')
        : attempt.fault
          ? describeAttempt(attempt)
          : `answered${attempt.status ? ` HTTP ${attempt.status}` : ''}`,
      tone: attempt.fault ? 'bad' : 'good',
    })
  }
  if (firstByteMs !== null) {
    if (!attemptLog) spans.push({ name: 'Until the first byte', from: 0, to: firstByteMs, tone: 'busy' })
    if (durationMs > firstByteMs)
      spans.push({
        name: call.stream ? 'Streaming the answer' : 'The rest of the answer',
        from: firstByteMs,
        to: durationMs,
        tone: 'good',
      })
  }
  return spans.length ? spans : [{ name: 'The whole call', from: 0, to: durationMs, tone: 'calm' }]
}
