// Tools for the agent of an owner or an operator. Each asks the operator API with the caller's own access token, so
// that no tool can read or do more than that token; what costs money, such as a larger budget, is only proposed, and a
// person confirms it in the console.
import {
  createMcpHandler,
  type Tool as Listed,
  ProtocolError,
  ProtocolErrorCode,
  Server,
} from '@modelcontextprotocol/server'
import { logFault } from '../../../api/server/envelope.ts'
import { asFault, invalid } from '../../../kernel/fault.ts'
import type { Log } from '../../../kernel/log.ts'
import { VERSION } from '../../../kernel/version.ts'
import { type Arguments, answered, refused, requiredText, textArgument } from './tool.ts'

/** A resource of the operator API, with the caller's own rights. */
export type Ask = (method: 'GET' | 'POST', path: string, body?: object) => Promise<unknown>

interface OwnTool {
  readonly name: string
  readonly title: string
  readonly description: string
  /** With what each is; all are texts. */
  readonly takes: Readonly<Record<string, string>>
  readonly needs: readonly string[]
  readonly run: (args: Arguments, ask: Ask) => Promise<unknown>
  /** Changes something. Absent: it only reads. */
  readonly writes?: true
}

/** From here on a budget is near its end. */
const NEAR = 0.8
const VALUES = 20

const ACCOUNT = 'The id of the account; accounts lists them.'
const at = (args: Arguments, name: string) => encodeURIComponent(requiredText(args, name))
const query = (given: Readonly<Record<string, string | undefined>>) => {
  const set = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  return set.length === 0 ? '' : `?${new URLSearchParams(set)}`
}
const taken = (args: Arguments, ...names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, textArgument(args, name)]))

/** What decides whether it is near its end. */
interface Budgets {
  readonly items: readonly { readonly id: string; readonly value: string | null; readonly share: number }[]
}

/** Each budget, and of one that each value has for itself, the values that used most of it. */
async function nearBudgets(args: Arguments, ask: Ask): Promise<Budgets> {
  const path = `/accounts/${at(args, 'account')}/budgets`
  const { items } = (await ask('GET', path)) as Budgets // As its view says.
  const states = await Promise.all(
    items.map(async (budget) => {
      if (budget.value !== null) return [budget]
      // As its view says.
      const values = (await ask('GET', `${path}/${budget.id}/values?limit=${VALUES}`)) as Budgets
      return values.items.map((one) => ({ ...budget, ...one }))
    }),
  )
  return { items: states.flat().filter(({ share }) => share >= NEAR) }
}

/** Of the list prices that this release knows. */
async function endingModels(ask: Ask): Promise<unknown> {
  const compared = await ask('POST', '/prices/compare', {})
  const { made, rows } = compared as { made: string; rows: readonly { kind: string; id: string }[] } // As its view says.
  return { made, items: rows.filter(({ kind }) => kind === 'deprecated' || kind === 'gone') }
}

const TOOLS: readonly OwnTool[] = [
  {
    name: 'accounts',
    title: 'Find accounts',
    description: 'The accounts that this token may see, with balance.',
    takes: { name: 'A part of the name.' },
    needs: [],
    run: (args, ask) => ask('GET', `/accounts${query({ q: textArgument(args, 'name') })}`),
  },
  {
    name: 'spend',
    title: 'Spend by product, key, team, person or label',
    description: 'What an account spent, in groups: calls, errors and credits.',
    takes: {
      account: ACCOUNT,
      by: 'product (default), key, endpoint, client, label::team, label::project, label::member, label:session or label:<name>.',
      from: 'First day, such as 2026-10-01.',
      to: 'Last day.',
      labels: 'Only these, such as feature=chat.',
    },
    needs: ['account'],
    run: (args, ask) =>
      ask('GET', `/accounts/${at(args, 'account')}/usage/sums${query(taken(args, 'by', 'from', 'to', 'labels'))}`),
  },
  {
    name: 'calls',
    title: 'Find calls',
    description: 'The newest calls of an account, or those that match; call tells why one failed.',
    takes: { account: ACCOUNT, status: 'Such as 429 or 5xx.', search: 'A part of an error, a model or an agent.' },
    needs: ['account'],
    run: (args, ask) => {
      const given = { status: textArgument(args, 'status'), q: textArgument(args, 'search'), limit: String(VALUES) }
      return ask('GET', `/accounts/${at(args, 'account')}/usage${query(given)}`)
    },
  },
  {
    name: 'call',
    title: 'Why a call failed',
    description: 'One call: its error in words, the attempts at vendors that this token may see, times and cost.',
    takes: { request_id: 'As in the header x-request-id: req_….' },
    needs: ['request_id'],
    run: (args, ask) => ask('GET', `/usage/${at(args, 'request_id')}`),
  },
  {
    name: 'near_budgets',
    title: 'Who is near a budget',
    description: `Budgets of an account, and single values of them, of which ${NEAR * 100} % or more is used.`,
    takes: { account: ACCOUNT },
    needs: ['account'],
    run: nearBudgets,
  },
  {
    name: 'ending_models',
    title: 'Models that end',
    description: 'Models of the catalog that their vendors stop offering, with the date. For operators.',
    takes: {},
    needs: [],
    run: (_, ask) => endingModels(ask),
  },
  {
    name: 'propose_budget',
    title: 'Propose another maximum for a budget',
    description: 'Changes nothing: a person confirms the proposal on the page Budgets of the console.',
    takes: { account: ACCOUNT, budget: 'Its id: bgt_….', max: 'The new maximum.', reason: 'Why, in a sentence.' },
    needs: ['account', 'budget', 'max', 'reason'],
    writes: true,
    run: (args, ask) => {
      const body = { budgetId: requiredText(args, 'budget'), ...taken(args, 'max', 'reason') }
      return ask('POST', `/accounts/${at(args, 'account')}/budget-proposals`, body)
    },
  },
]

interface Asking {
  readonly ask: Ask
  readonly requestId: string
  readonly log: Log
}

export function createOwnTools(): (request: Request, json: unknown, asking: Asking) => Promise<Response> {
  const known = new WeakMap<Request, Asking>()
  const handler = createMcpHandler(
    ({ requestInfo }) => {
      const asking = requestInfo && known.get(requestInfo)
      if (!asking) throw new Error('a request that nobody let in')
      return serverFor(asking)
    },
    { maxSubscriptions: 0 },
  )
  return (request, json, asking) => {
    known.set(request, asking)
    return handler.fetch(request, { parsedBody: json })
  }
}

function serverFor({ ask, requestId, log }: Asking): Server {
  const about = { name: 'tollgate-account', title: 'Tollgate: accounts and spend', version: VERSION }
  const server = new Server(about, { capabilities: { tools: {} } })
  server.setRequestHandler('tools/list', () => ({ tools: TOOLS.map(listed) }))
  server.setRequestHandler('tools/call', async ({ params }) => {
    const tool = TOOLS.find(({ name }) => name === params.name)
    if (!tool) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no tool of this name.')
    try {
      const args = params.arguments ?? {}
      const unknown = Object.keys(args).find((name) => !Object.hasOwn(tool.takes, name))
      if (unknown !== undefined)
        throw invalid(`${JSON.stringify(unknown.slice(0, 64))} is not an argument of ${tool.name}.`)
      const structured = await tool.run(args, ask)
      return answered({ structured, text: JSON.stringify(structured) }, requestId)
    } catch (error) {
      const fault = asFault(error)
      logFault(fault, requestId, log)
      return refused(fault, requestId)
    }
  })
  return server
}

function listed({ name, title, description, takes, needs, writes }: OwnTool): Listed {
  const fields = Object.entries(takes).map(([field, what]) => [field, { type: 'string', description: what }] as const)
  return {
    name,
    title,
    description,
    inputSchema: { type: 'object', properties: Object.fromEntries(fields), required: [...needs] },
    annotations: { readOnlyHint: !writes, openWorldHint: false, ...(writes ? { destructiveHint: false } : {}) },
  }
}
