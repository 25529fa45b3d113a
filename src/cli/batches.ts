// Batches of an account, and content logging.

import type { ContentRules, ContentView } from '../admission/views.ts'
import type { BatchDetail, BatchLineView, BatchView } from '../background/views.ts'
import { BATCH_STATUSES } from '../catalog/batches.ts'
import {
  at,
  CliError,
  type Command,
  flag,
  type Invocation,
  type Option,
  type Told,
  takes,
  text,
  told,
} from './command.ts'
import { keyNames } from './names.ts'
import { type Columns, card, listPages, PAGE_OPTIONS, query, TEST_OPTION, table, testOf } from './table.ts'

const done = ({ counts: { completed, failed, total } }: BatchView) => `${completed + failed} of ${total}`

function show(batch: BatchDetail): string {
  const { id, status, endpoint, key, input, outputFile, errorFile, counts, charged, errors, ...times } = batch
  const facts = card({
    ...{ id, status, endpoint, key, input: `${input.id} ${input.name ?? '(gone)'}`, 'output file': outputFile },
    ...{ 'error file': errorFile, done: done(batch), failed: counts.failed, charged, ...times },
  })
  return errors.length === 0 ? facts : `${facts}\n\n${table(errors, { LINE: 'line', PROBLEM: 'message' })}`
}

export const BATCH_COMMANDS: readonly Command[] = [
  {
    name: 'batches list',
    summary: 'The batches of an account, newest first, with what they have cost so far.',
    args: ['account'],
    options: {
      ...PAGE_OPTIONS,
      ...TEST_OPTION,
      status: takes('status', `One of ${BATCH_STATUSES.join(', ')}.`, { allowed: BATCH_STATUSES }),
    },
    run: (call) =>
      listPages<BatchView>(call, at`/accounts/${call.args[0]}/batches`, {
        filter: { status: text(call, 'status'), test: testOf(call) },
        columns: {
          BATCH: 'id',
          STATUS: 'status',
          ENDPOINT: 'endpoint',
          DONE: done,
          FAILED: ({ counts }) => counts.failed,
          CREDITS: 'charged',
          CREATED: 'createdAt',
          ENDED: 'endedAt',
        },
        empty: 'No batches yet. Callers create them with POST /v1/batches.',
      }),
  },
  {
    name: 'batches show',
    summary: 'Progress and cost of a batch, and errors of its file.',
    args: ['account', 'batch'],
    options: TEST_OPTION,
    run(call) {
      const path = at`/accounts/${call.args[0]}/batches/${call.args[1]}` + query({ test: testOf(call) })
      return told(call.api.call<BatchDetail>('GET', path), show)
    },
  },
  {
    name: 'batches lines',
    summary: 'The lines of a batch that failed, each with the request id of its call.',
    args: ['account', 'batch'],
    options: {
      ...PAGE_OPTIONS,
      ...TEST_OPTION,
      completed: flag('Shows answered lines instead.'),
    },
    run: (call) =>
      listPages<BatchLineView>(call, at`/accounts/${call.args[0]}/batches/${call.args[1]}/lines`, {
        filter: { outcome: call.values.completed === true ? 'completed' : undefined, test: testOf(call) },
        columns: { LINE: 'line', 'CUSTOM ID': 'customId', STATUS: 'status', CALL: 'call', MESSAGE: 'message' },
        empty: call.values.completed === true ? 'No line has been answered yet.' : 'No line failed.',
      }),
  },
  {
    name: 'batches cancel',
    summary: 'Cancels a batch. Answered lines stay available and are charged.',
    args: ['account', 'batch'],
    options: TEST_OPTION,
    run(call) {
      const path = at`/accounts/${call.args[0]}/batches/${call.args[1]}/cancel` + query({ test: testOf(call) })
      return told(call.api.call<BatchDetail>('POST', path), ({ status }) => `The batch is ${status}.`)
    },
  },
]

// Content logging: stored requests and answers.

const KEY: Readonly<Record<string, Option>> = {
  key: takes('key', 'Only this key instead of the whole account.', { refersTo: 'key' }),
}

async function showRules(call: Invocation, asked: Promise<ContentRules>): Promise<Told> {
  const answer = await asked
  const { account, keys, storedCalls } = answer
  const whole = account ? `${account.days} days, up to ${account.maxBytes} characters of each body` : 'off'
  const facts = card({ contentLogging: whole, storedCalls })
  if (keys.length === 0) return { answer, words: facts }
  const names = await keyNames(call.api, call.args[0] ?? '')
  const columns: Columns<(typeof keys)[number]> = {
    KEY: ({ key }) => names.get(key) ?? key,
    DAYS: 'days',
    'MAX BYTES': 'maxBytes',
  }
  return { answer, words: `${facts}\n\n${table(keys, columns)}` }
}

function shown({ request, answer, expiresAt }: ContentView): string {
  const cut = (body: { cut: boolean }) => (body.cut ? '\n[cut: there was more]' : '')
  const head = `${request.method} ${request.path}   (kept until ${expiresAt})`
  const said = answer
    ? `${answer.status} ${answer.contentType}\n\n${answer.body}${cut(answer)}`
    : 'Nothing was answered.'
  return `${head}\n\n${request.body}${cut(request)}\n\n${said}`
}

function whole(call: Invocation, name: string): number | undefined {
  const value = text(call, name)
  if (value === undefined) return undefined
  if (!/^\d{1,7}$/.test(value)) throw new CliError(`--${name} must be a whole number.`)
  return Number(value)
}

export const CONTENT_COMMANDS: readonly Command[] = [
  {
    name: 'content show',
    summary: 'Shows whether content logging is on, and for how many days.',
    args: ['account'],
    run: (call) => showRules(call, call.api.call<ContentRules>('GET', at`/accounts/${call.args[0]}/content`)),
  },
  {
    name: 'content on',
    summary: 'Turns on content logging for an account or a key; contents are encrypted.',
    args: ['account'],
    options: {
      ...KEY,
      days: takes('n', 'For how many days; 7 by default.'),
      'max-bytes': takes('n', 'Maximum size per message; 65536 by default.'),
    },
    run(call) {
      const body = { key: text(call, 'key'), days: whole(call, 'days'), maxBytes: whole(call, 'max-bytes') }
      return showRules(call, call.api.call<ContentRules>('PUT', at`/accounts/${call.args[0]}/content`, body))
    },
  },
  {
    name: 'content off',
    summary: 'Turns off content logging and deletes logged contents at once.',
    args: ['account'],
    options: { ...KEY, keep: flag('Logged contents stay until they expire.') },
    run(call) {
      const chosen = query({ key: text(call, 'key'), keep: call.values.keep === true ? 'true' : undefined })
      return showRules(call, call.api.call<ContentRules>('DELETE', at`/accounts/${call.args[0]}/content` + chosen))
    },
  },
  {
    name: 'content read',
    summary: 'Shows request and answer of a call. The audit log records the reading.',
    args: ['request'],
    run: (call) => told(call.api.call<ContentView>('GET', at`/usage/${call.args[0]}/content`), shown),
  },
  {
    name: 'content remove',
    summary: 'Deletes the logged contents of one call at once.',
    args: ['request'],
    run: (call) => told(call.api.call('DELETE', at`/usage/${call.args[0]}/content`), () => 'Removed.'),
  },
]
