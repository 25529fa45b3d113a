// Commands of batches.
import type { Commands } from '../../operator/command.ts'

export const BATCH_COMMANDS: Commands = {
  'GET /accounts/{id}/batches': {
    usage: 'batches list <account>: The batches of an account, newest first, with what they have cost so far.',
    columns:
      'BATCH=id, status, endpoint, DONE={counts.completed} of {counts.total}, FAILED=counts.failed, CREDITS=charged, CREATED=createdAt, ENDED=endedAt',
    empty: 'No batches yet. Callers create them with POST /v1/batches.',
  },
  'GET /accounts/{id}/batches/{batch}':
    'batches show <account> <batch>: Progress and cost of a batch, and errors of its file.',
  'GET /accounts/{id}/batches/{batch}/lines': {
    usage: 'batches lines <account> <batch>: The lines of a batch that failed, each with the request id of its call.',
    columns: 'line, customId, status, call, message',
    empty: 'There are no such lines.',
  },
  'POST /accounts/{id}/batches/{batch}/cancel': {
    usage: 'batches cancel <account> <batch>: Cancels a batch. Answered lines stay available and are charged.',
    words: 'The batch is {status}.',
  },
}
