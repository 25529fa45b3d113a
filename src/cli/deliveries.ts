// What was sent to receivers outside, and what became of it.
import { DELIVERY_KINDS, DELIVERY_STATUSES, type DeliveryDetail, type DeliveryView } from '../jobs/delivery-views.ts'
import { at, type Command, text, told } from './command.ts'
import { listPages, PAGE_OPTIONS } from './pages.ts'
import { card, table } from './table.ts'

function show({ history, body, ...delivery }: DeliveryDetail): string {
  const tries =
    history.length === 0
      ? 'It has not been sent yet.'
      : table(history, {
          ATTEMPT: 'number',
          AT: 'at',
          MS: 'durationMs',
          STATUS: 'statusCode',
          ERROR: 'error',
          RESPONSE: 'response',
        })
  return `${card(delivery)}\n\n${tries}\n\n${body ?? 'What is sent was not kept.'}`
}

export const DELIVERY_COMMANDS: readonly Command[] = [
  {
    name: 'deliveries list',
    summary: 'Lists webhooks, messages and mails with their status, newest first.',
    args: ['[account]'],
    about: 'Without an account: those of the gateway and of all accounts.',
    options: {
      ...PAGE_OPTIONS,
      status: {
        type: 'string',
        value: 'status',
        allowed: DELIVERY_STATUSES,
        help: `One of ${DELIVERY_STATUSES.join(', ')}.`,
      },
      kind: { type: 'string', value: 'kind', allowed: DELIVERY_KINDS, help: `One of ${DELIVERY_KINDS.join(', ')}.` },
    },
    run: (call) =>
      listPages<DeliveryView>(call, '/deliveries', {
        filter: { account: call.args[0], status: text(call, 'status'), kind: text(call, 'kind') },
        columns: {
          DELIVERY: 'id',
          AT: 'at',
          ACCOUNT: ({ account }) => account ?? 'the gateway',
          EVENT: 'event',
          KIND: 'kind',
          TO: 'to',
          STATUS: 'status',
          ATTEMPTS: 'attempts',
          ANSWER: ({ statusCode, error }) => error ?? statusCode,
          NEXT: 'nextAttemptAt',
        },
      }),
  },
  {
    name: 'deliveries show',
    summary: 'Shows one delivery: every attempt, the receiver’s answers, and the message.',
    args: ['delivery'],
    run: (call) => told(call.api.call<DeliveryDetail>('GET', at`/deliveries/${call.args[0]}`), show),
  },
  {
    name: 'deliveries repeat',
    summary: 'Sends a delivery again now, with the same id.',
    args: ['delivery'],
    about: 'Not possible while it is being sent. Receivers can recognize the repetition by its webhook-id.',
    run: (call) =>
      told(
        call.api.call<DeliveryView>('POST', at`/deliveries/${call.args[0]}/repeat`),
        ({ id }) => `On its way. How it goes: tollgate deliveries show ${id}`,
      ),
  },
]
