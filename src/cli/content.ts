// Requests and answers that are kept where somebody asked for it.
import type { ContentRules, ContentView } from '../admission/views.ts'
import { at, CliError, type Command, type Invocation, type Option, type Told, text, told } from './command.ts'
import { keyNames } from './names.ts'
import { type Columns, card, query, table } from './table.ts'

const KEY: Readonly<Record<string, Option>> = {
  key: { type: 'string', value: 'key', refersTo: 'key', help: 'Only this key instead of the whole account.' },
}

async function show(call: Invocation, asked: Promise<ContentRules>): Promise<Told> {
  const answer = await asked
  const { account, keys, kept } = answer
  const whole = account ? `${account.days} days, up to ${account.maxBytes} characters of each body` : 'off'
  const facts = card({ contentLogging: whole, loggedCalls: kept })
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
    run: (call) => show(call, call.api.call<ContentRules>('GET', at`/accounts/${call.args[0]}/content`)),
  },
  {
    name: 'content on',
    summary: 'Turns on content logging for an account or a key; contents are encrypted.',
    args: ['account'],
    options: {
      ...KEY,
      days: { type: 'string', value: 'n', help: 'For how many days; 7 by default.' },
      'max-bytes': { type: 'string', value: 'n', help: 'Maximum size per message; 65536 by default.' },
    },
    run(call) {
      const body = { key: text(call, 'key'), days: whole(call, 'days'), maxBytes: whole(call, 'max-bytes') }
      return show(call, call.api.call<ContentRules>('PUT', at`/accounts/${call.args[0]}/content`, body))
    },
  },
  {
    name: 'content off',
    summary: 'Turns off content logging and deletes logged contents at once.',
    args: ['account'],
    options: { ...KEY, keep: { type: 'boolean', help: 'Logged contents stay until they expire.' } },
    run(call) {
      const chosen = query({ key: text(call, 'key'), keep: call.values.keep === true ? 'true' : undefined })
      return show(call, call.api.call<ContentRules>('DELETE', at`/accounts/${call.args[0]}/content` + chosen))
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
