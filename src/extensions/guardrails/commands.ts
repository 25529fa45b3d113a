// Commands of content logging.
import type { Commands } from '../../operator/command.ts'

const CONTENT = 'Content logging: {account|off}. Keys: {keys|none}. Stored calls: {storedCalls}.'

export const CONTENT_COMMANDS: Commands = {
  'GET /accounts/{id}/content': { usage: 'content show <account>', words: CONTENT },
  'PUT /accounts/{id}/content': {
    usage: 'content on <account>: Turns on content logging for an account or a key; contents are encrypted.',
    words: CONTENT,
  },
  'DELETE /accounts/{id}/content': {
    usage: 'content off <account>: Turns off content logging and deletes logged contents at once.',
    words: CONTENT,
  },
  'GET /usage/{requestId}/content': {
    usage: 'content read <request>: Shows request and answer of a call. The audit log records the reading.',
    words:
      '{request.method} {request.path} (kept until {expiresAt}; cut: {request.cut})\n\n{request.body}\n\n{answer.status|Nothing was answered.} {answer.contentType}\n\n{answer.body}',
  },
  'DELETE /usage/{requestId}/content': {
    usage: 'content remove <request>: Deletes the logged contents of one call at once.',
    words: 'Removed.',
  },
}
