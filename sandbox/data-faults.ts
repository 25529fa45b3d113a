// Faults on demand for the data rooms, whose callers can say little: a domain such as fault-500.example or a user name
// such as fault_500 misbehaves in just that way. docs/guides/04-sandbox.md lists them.
import type { ServerResponse } from 'node:http'
import { type ErrorBody, misbehave, sendWhole } from './misbehave.ts'
import type { RoomContext } from './room.ts'
import { readTriggers, type Trigger, Triggers } from './trigger.ts'

const WORDS: Readonly<Record<string, Omit<Trigger, 'rest'>>> = {
  slow: { name: 'wait', value: '1500' },
  stall: { name: 'stall', value: '' },
  hangup: { name: 'hang-up', value: '' },
  cut: { name: 'cut', value: '' },
  garbage: { name: 'garbage', value: '' },
  html: { name: 'page', value: '' },
  empty: { name: 'nothing', value: '' },
}

/** What the asked-for name and the general triggers want. */
export function dataTriggers(asked: string, ctx: RoomContext): Triggers {
  const word = /^fault[-_](\w+?)(?:\.example)?$/i.exec(asked)?.[1]?.toLowerCase() ?? ''
  const general = readTriggers({ texts: [asked], headers: ctx.call.headers, query: ctx.query, memory: ctx.memory })
  if (/^[45]\d\d$/.test(word)) return new Triggers([{ name: word, value: '', rest: statusRest(word) }, ...general.all])
  const named = WORDS[word]
  return named ? new Triggers([{ ...named, rest: '' }, ...general.all]) : general
}

const statusRest = (status: string) => (status === '429' || status === '503' ? 'retry-after=2' : '')

/** Answers with the value, unless a trigger wants otherwise. The value is made only when it is needed. */
export async function answerData(
  res: ServerResponse,
  ctx: RoomContext,
  { triggers, errorBody }: { triggers: Triggers; errorBody: ErrorBody },
  make: () => { status: number; value: unknown },
): Promise<void> {
  if (await misbehave(res, ctx, triggers, errorBody)) return
  if (triggers.has('page')) {
    res
      .writeHead(200, { 'content-type': 'text/html' })
      .end('<html><body>Checking your browser (simulated)</body></html>')
    return
  }
  if (triggers.has('nothing')) {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': '0' }).end()
    return
  }
  const { status, value } = make()
  if (status === 200) return sendWhole(res, ctx, triggers, value)
  ctx.json(status, value)
}
