// What becomes of the batches of an account.
import type { BatchDetail, BatchLineView, BatchView } from '../background/views.ts'
import { BATCH_STATUSES } from '../catalog/batches.ts'
import { at, type Command, text, told } from './command.ts'
import { card, listPages, PAGE_OPTIONS, query, TEST_OPTION, table, testOf } from './table.ts'

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
      status: {
        type: 'string',
        value: 'status',
        allowed: BATCH_STATUSES,
        help: `One of ${BATCH_STATUSES.join(', ')}.`,
      },
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
      completed: { type: 'boolean', help: 'Shows answered lines instead.' },
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
