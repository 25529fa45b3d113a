// The operator API, from the table of resources that both the operator token and the console reach.

import * as z from 'zod'
import { EXTENSIONS } from '../../src/compose.ts'
import { ACCOUNT_ROLES, type AnyRole, OPERATOR_ROLES, RIGHTS, ROLE_WORDS } from '../../src/identity/roles.ts'
import { ADMIN_PREFIX, operatorResources, type ResourceDeps } from '../../src/operator/admin.ts'
import type { Resource } from '../../src/operator/resource.ts'
import { code, page, table } from './markdown.ts'

function rightOf({ access }: Resource): string {
  return access === 'self' || access === 'visitor' ? '' : code(access)
}

/** The table of roles as a table. */
export function rolesPage(): string {
  const all = [...OPERATOR_ROLES, ...ACCOUNT_ROLES]
  return page(
    'Roles and rights',
    'What each role may do, by resource and verb. Roles of the gateway apply everywhere; roles of an account apply in that account. The names in the first column are also the scopes of tokens.',
    table(
      ['Role', 'Of', 'For'],
      all.map((role) => [code(role), ofWhat(role), ROLE_WORDS[role]]),
    ),
    'An asterisk marks sensitive rights: a person must confirm who they are again. [The operator API](operator-api.md) says which right each of its resources needs. Nobody can give or take a role with more rights than their own. An account keeps at least one owner, unless an operator takes the last one away; the gateway keeps at least one operator.',
    table(
      ['Right', 'About', ...all],
      RIGHTS.map(({ permission, about, roles, isSensitive }) => [
        `${code(permission)}${isSensitive ? ' *' : ''}`,
        about,
        ...all.map((role) => (roles.has(role) ? '✓' : '')),
      ]),
    ),
  )
}

const ofWhat = (role: AnyRole) => (OPERATOR_ROLES.some((one) => one === role) ? 'the gateway' : 'an account')

/** The table needs nothing of its dependencies until a resource is asked for. */
export const nothing: object = new Proxy(() => nothing, { get: () => nothing, apply: () => nothing })

export function listResources(): Resource[] {
  return [
    ...operatorResources(nothing as ResourceDeps),
    ...EXTENSIONS.flatMap((one) => one.describe(nothing).resources),
  ]
}

function fieldsOf(schema: z.ZodType | undefined): string {
  if (!schema) return ''
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  return Object.keys(properties)
    .map((name) => (required.includes(name) ? `**${code(name)}**` : code(name)))
    .join(', ')
}

type Shape = z.core.JSONSchema.BaseSchema

/** Of a list, the fields of its items. */
function answerOf({ properties = {}, required = [], anyOf = [] }: Shape): string {
  if (anyOf.length > 0) return anyOf.map((one) => answerOf(one as Shape)).join(' or ')
  const items = (properties.items as Shape | undefined)?.items
  if (items) return `list of ${answerOf(items as Shape)}`
  return Object.keys(properties)
    .map((name) => (required.includes(name) ? code(name) : `[${code(name)}]`))
    .join(', ')
}

export function operatorApiPage(): string {
  const rows = listResources().map((entry) => [
    code(`${entry.method} ${entry.path}`),
    rightOf(entry),
    [fieldsOf(entry.query), fieldsOf(entry.body), entry.repeatable ? 'header `Idempotency-Key`' : '']
      .filter(Boolean)
      .join('; '),
    answerOf(z.toJSONSchema(entry.answer, { io: 'input', unrepresentable: 'any' })),
  ])
  return page(
    'Operator API',
    `Below \`${ADMIN_PREFIX}\`, with \`Authorization: Bearer <token>\`. A token may do what its scopes allow; the token of the first start may do everything. The console uses the same resources for people with a session; their role must have the right in the second column ([roles and rights](roles.md)).`,
    'Answers have the native envelope. Amounts are decimal strings of credits (numbers are accepted). The types of every field are in `/openapi.json`. Lists answer `{items, next}`; send `next` back as `cursor`. Usage and ledger answer CSV for `accept: text/csv`, with a column for every field. The ledger lists movements of credits in their order, each with the balance after it; `zero=true` lists rows that moved no credits. Every change writes an audit row, and so does reading the logged content of a call (`/usage/{requestId}/content`). Unknown fields are rejected. An `Idempotency-Key` is stored forever: a repetition with the same body gets the same `data` and the header `idempotent-replayed: true` and has no second effect; with another body it gets 409.',
    table(
      [
        'Resource',
        'Right',
        'Query and body fields (bold: required)',
        'Data of the answer (in brackets: not always there)',
      ],
      rows,
    ),
  )
}
