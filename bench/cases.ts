// What is compared, side by side: each case a body, a shape of load and the gateways that can answer it.
import { ANALYTICS_PATH, MODEL, SLOW_MODEL, TLS_MODEL } from './catalog.ts'
import type { Shape } from './load.ts'

export type Side = 'upstream' | 'nginx' | 'Portkey' | 'floor' | 'Tollgate'

export interface Case {
  readonly id: string
  readonly title: string
  readonly sides: readonly Side[]
  readonly shape: Shape
  readonly body: string
  readonly method?: 'GET' | 'POST'
  /** Tollgate's path; the others get the chat path, or the same when `pathForAll`. */
  readonly path?: string
  readonly pathForAll?: boolean
  /**
   * Which of the accounts that are made for some cases calls; in turns, `budgeted` is compared with an account without
   * budgets.
   */
  readonly account?: 'poor' | 'limited' | 'budgeted'
  readonly headers?: Readonly<Record<string, string>>
  readonly slow?: boolean
  readonly tls?: boolean
  readonly rounds?: number
}

const ALL: readonly Side[] = ['nginx', 'Portkey', 'Tollgate']
const WITH_FLOOR: readonly Side[] = ['nginx', 'Portkey', 'floor', 'Tollgate']
const SYSTEM = 'You are a helpful assistant that answers in one sentence.'
const QUESTION =
  'What does a gateway do with the credits of a call that was cut off in the middle of its answer, and why?'
const messages = [
  { role: 'system', content: SYSTEM },
  { role: 'user', content: QUESTION },
]
const chat = JSON.stringify({ model: MODEL, messages, max_tokens: 100 })
const stream = JSON.stringify({ model: MODEL, messages, max_tokens: 200, stream: true })
/** A caller that names no limit: the gateway tells the vendor one. */
const unlimited = JSON.stringify({ model: MODEL, messages })
/** Counts for three budgets, where the account has them: of the key, of each user and of each feature. */
const labelled = JSON.stringify({ model: MODEL, messages, user: 'alice' })
const unlimitedStream = JSON.stringify({ model: MODEL, messages, stream: true })
const converted = JSON.stringify({
  model: MODEL,
  system: SYSTEM,
  messages: messages.slice(1),
  max_tokens: 200,
  stream: true,
})
const long = JSON.stringify({
  model: MODEL,
  messages: [{ role: 'user', content: `${QUESTION} `.repeat(10_000).slice(0, 1_000_000) }],
  max_tokens: 100,
})
const slow = JSON.stringify({ model: SLOW_MODEL, messages, max_tokens: 4_000, stream: true })

export const OPEN_STREAMS = 2_000

/** Of each open stream: five minutes of ten a second, or five seconds. */
export function openStreamChunks(short: boolean): number {
  return short ? 50 : 3_000
}

export function listCases(short: boolean): Case[] {
  const seconds = short ? 1 : 2.5
  const chatAt = (connections: number): Case => ({
    id: `chat-${connections}`,
    title: `chat, JSON, ${connections} at a time`,
    sides: connections === 1 ? ['upstream', ...WITH_FLOOR] : WITH_FLOOR,
    shape: { connections, seconds },
    body: chat,
  })
  return [
    ...[1, 8, 64, 256].map(chatAt),
    ...[1, 64].map(
      (connections): Case => ({
        ...chatAt(connections),
        id: `unlimited-${connections}`,
        title: `chat without max_tokens, JSON, ${connections} at a time`,
        sides: ['Tollgate'],
        body: unlimited,
      }),
    ),
    {
      ...chatAt(64),
      id: 'budgets-64',
      title: 'chat without max_tokens, three budgets (key, user, tag), JSON, 64 at a time',
      sides: ['Tollgate'],
      body: labelled,
      headers: { 'x-tollgate-tags': 'feature=chat' },
      account: 'budgeted',
    },
    {
      id: 'unlimited-stream',
      title: 'chat without max_tokens, SSE of 100 chunks, 64 at a time',
      sides: ['Tollgate'],
      shape: { connections: 64, seconds },
      body: unlimitedStream,
    },
    {
      id: 'latency',
      title: 'chat, JSON, 300 calls a second over 8 connections',
      sides: ['upstream', ...WITH_FLOOR],
      shape: { connections: 8, seconds: short ? 2 : 5, rate: 300 },
      body: chat,
    },
    {
      id: 'stream',
      title: 'chat, SSE of 100 chunks, 64 at a time',
      sides: ALL,
      shape: { connections: 64, seconds },
      body: stream,
    },
    {
      id: 'stream-start',
      title: 'chat, SSE of 100 chunks, 50 a second over 8 connections',
      sides: ['upstream', ...ALL],
      shape: { connections: 8, seconds: short ? 2 : 4, rate: 50 },
      body: stream,
    },
    {
      id: 'chat-tls',
      title: 'chat, JSON, 64 at a time, an upstream behind TLS',
      sides: ['nginx', 'Tollgate'],
      shape: { connections: 64, seconds },
      body: JSON.stringify({ model: TLS_MODEL, messages, max_tokens: 100 }),
      tls: true,
    },
    {
      id: 'stream-tls',
      title: 'chat, SSE of 100 chunks, 64 at a time, an upstream behind TLS',
      sides: ['nginx', 'Tollgate'],
      shape: { connections: 64, seconds },
      body: JSON.stringify({ model: TLS_MODEL, messages, max_tokens: 200, stream: true }),
      tls: true,
    },
    {
      id: 'converted',
      title: 'Messages converted to a chat vendor, SSE of 100 chunks, 64 at a time (nginx: unconverted)',
      sides: ['nginx', 'Tollgate'],
      shape: { connections: 64, seconds },
      body: converted,
      path: '/v1/messages',
    },
    {
      id: 'models',
      title: 'GET /v1/models, 64 at a time',
      sides: ['Tollgate'],
      shape: { connections: 64, seconds },
      body: '',
      method: 'GET',
      path: '/v1/models',
    },
    {
      id: 'analytics',
      title: 'an analytics call, 64 at a time',
      sides: ['nginx', 'Tollgate'],
      shape: { connections: 64, seconds },
      body: '',
      method: 'GET',
      path: `${ANALYTICS_PATH}?keys=example.com`,
      pathForAll: true,
    },
    {
      id: 'refused-402',
      title: 'refused: no credits (402), 64 at a time',
      sides: ['Tollgate'],
      shape: { connections: 64, seconds },
      body: chat,
      account: 'poor',
    },
    {
      id: 'refused-429',
      title: 'refused: over its limit (429), 64 at a time',
      sides: ['Tollgate'],
      shape: { connections: 64, seconds },
      body: chat,
      account: 'limited',
    },
    {
      id: 'large',
      title: 'chat, JSON, a prompt of 1 MB, 8 at a time',
      sides: ALL,
      shape: { connections: 8, seconds },
      body: long,
    },
    {
      id: 'open-streams',
      title: `${OPEN_STREAMS} open streams, a chunk every 100 ms each, ${short ? '5 s' : '5 minutes'}`,
      sides: ['nginx', 'Tollgate'],
      shape: {
        connections: OPEN_STREAMS,
        seconds: openStreamChunks(short) / 10,
        total: OPEN_STREAMS,
        rampSeconds: short ? 2 : 20,
        chunkDelays: true,
      },
      body: slow,
      slow: true,
      rounds: 1,
    },
  ]
}
