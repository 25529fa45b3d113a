// The way of a text request through the sandbox, the same for every format: read it, see whether to misbehave, refuse
// what the vendor would refuse, and answer.
import type { ServerResponse } from 'node:http'
import { composeReply } from './compose.ts'
import { isRecord, type Json, parseJson } from './json.ts'
import { misbehave, sendWhole } from './misbehave.ts'
import type { Room, RoomContext } from './room.ts'
import { dice, hash } from './seed.ts'
import { type TextAsk, type TextReply, triggerTexts } from './text.ts'
import { readTriggers, type Triggers } from './trigger.ts'

interface TextFormat {
  readonly name: string
  readonly path: RegExp
  error(status: number, message: string, param?: string | null, code?: string | null): unknown
  /** The body with what the vendor keeps of the conversation; throws its refusal. Absent: it keeps nothing. */
  resume?(body: Json, ctx: RoomContext): Json
  /** Never throws: whatever it is, a question is found in it. */
  read(body: Json, ctx: RoomContext): TextAsk
  /** Throws the refusal of the vendor. */
  check(body: Json, ask: TextAsk, ctx: RoomContext): void
  whole(answer: TextAnswer): Json
  stream(res: ServerResponse, ctx: RoomContext, answer: TextAnswer): Promise<void>
}

export interface TextAnswer {
  /** 24 hexadecimal digits. */
  readonly id: string
  readonly createdSeconds: number
  readonly body: Json
  readonly ask: TextAsk
  readonly reply: TextReply
  readonly triggers: Triggers
}

export function textRoom(format: TextFormat): Room {
  return {
    name: format.name,
    match: (method, path) => method === 'POST' && format.path.test(path),
    serve: (_req, res, ctx) => serve(format, res, ctx),
  }
}

async function serve(format: TextFormat, res: ServerResponse, ctx: RoomContext): Promise<void> {
  const sent = parseJson((await ctx.body()).toString('utf8'))
  if (!isRecord(sent)) return ctx.json(400, format.error(400, 'We could not parse the JSON body of your request.'))
  let body = sent
  try {
    body = format.resume?.(sent, ctx) ?? sent
  } catch (error) {
    return ctx.refuse(error, format.error)
  }
  const ask = format.read(body, ctx)
  ctx.call.model = ask.model
  ctx.call.stream = body.stream === true
  const { memory, query } = ctx
  const triggers = readTriggers({ texts: triggerTexts(ask), headers: ctx.call.headers, query, memory })
  if (await misbehave(res, ctx, triggers, format.error)) return
  try {
    format.check(body, ask, ctx)
  } catch (error) {
    return ctx.refuse(error, format.error)
  }
  const answer: TextAnswer = {
    id: dice(hash(`${ask.model} ${ctx.call.number} ${ctx.world.nowMs()}`)).hex(24),
    createdSeconds: Math.floor(ctx.world.nowMs() / 1000),
    body,
    ask,
    reply: composeReply(ask, triggers, memory),
    triggers,
  }
  if (body.stream === true) return format.stream(res, ctx, answer)
  await sendWhole(res, ctx, triggers, format.whole(answer))
}

/** The text of a whole answer; `[[big=N]]` makes it that long. */
export function wholeText({ reply, triggers }: TextAnswer): string {
  const big = triggers.number('big')
  return big === undefined ? reply.text : 'Simulated. '.repeat(Math.ceil(big / 11)).slice(0, big)
}
