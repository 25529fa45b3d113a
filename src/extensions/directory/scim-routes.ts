// SCIM 2.0 over HTTP, below /scim/v2: a directory (Okta, Entra ID, Keycloak) sends people and groups with a token of
// scope `scim`. The token decides to which account they belong.
import { rawQuery, type WebServer } from '../../api/server/server.ts'
import type { WebAnswer, WebRequest } from '../../api/server/web.ts'
import type { Permission } from '../../identity/roles.ts'
import { isObject, type Json } from '../../kernel/json.ts'
import { type Actor, mayGive, requireRight } from '../../operator/resource.ts'
import {
  GROUP_NAMES,
  GROUP_SCHEMA,
  type Next,
  type Scim,
  type ScimScope,
  scimErrorOf,
  USER_NAMES,
  USER_SCHEMA,
} from './scim.ts'
import { patched, readFilter, ScimError } from './scim-query.ts'

const PREFIX = '/scim/v2'
const BODY_BYTES_MAX = 1_048_576
const PAGE_MAX = 200
const READ_ONLY = ['/Schemas', '/ResourceTypes', '/ServiceProviderConfig']
const LIST_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:ListResponse'
const ERROR_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:Error'

interface ScimRoutesDeps {
  readonly scim: Scim
  readonly authenticate: (request: WebRequest) => Promise<Actor>
  readonly publicUrl: () => string
}

interface ScimRequest {
  readonly body: Buffer
  readonly query: Json
  /** The last part of the path. */
  readonly id: string
  readonly url: string
}

/** The two resource types, users and groups, which have the same endpoints. */
interface Kind {
  readonly path: string
  readonly names: readonly string[]
  readonly list: (scope: ScimScope) => Promise<Json[]>
  readonly get: (scope: ScimScope, id: string) => Promise<Json>
  readonly create: (scope: ScimScope, body: Json) => Promise<Json>
  readonly replace: (scope: ScimScope, id: string, next: Next) => Promise<Json>
  readonly remove: (scope: ScimScope, id: string) => Promise<void>
}

export function mountScim(app: WebServer, { scim, authenticate, publicUrl }: ScimRoutesDeps): void {
  const at = (path: string) => `${publicUrl()}${PREFIX}${path}`
  const kinds: readonly Kind[] = [
    {
      path: '/Users',
      names: USER_NAMES,
      list: scim.users,
      get: scim.user,
      create: scim.createUser,
      replace: scim.replaceUser,
      remove: scim.deleteUser,
    },
    {
      path: '/Groups',
      names: GROUP_NAMES,
      list: scim.groups,
      get: scim.group,
      create: scim.createGroup,
      replace: scim.replaceGroup,
      remove: scim.deleteGroup,
    },
  ]
  const withAddresses = (kind: Kind, resource: Json): Json => {
    const meta = isObject(resource.meta) ? resource.meta : {}
    const members = Array.isArray(resource.members)
      ? { members: resource.members.map((one: Json) => ({ ...one, $ref: at(`/Users/${String(one.value)}`) })) }
      : {}
    return { ...resource, ...members, meta: { ...meta, location: at(`${kind.path}/${String(resource.id)}`) } }
  }

  async function scopeOf(request: WebRequest): Promise<ScimScope> {
    const actor = await authenticate(request)
    const account = actor.token?.account ?? undefined
    const right: Permission = request.method === 'GET' ? 'scim:read' : 'scim:write'
    requireRight(actor, right, account)
    // The token needs only the scope `scim`. The roles that the directory may give are limited by the rights of the
    // token's creator.
    const maker = actor.token ? { ...actor, token: { ...actor.token, scopes: ['*'] } } : actor
    return {
      account: account ?? null,
      mayGive: (role) => mayGive(maker)(role, account),
      by: {
        actor: actor.name,
        ip: request.ip,
        requestId: request.id,
        ...(actor.token ? { token: actor.token.name } : {}),
      },
    }
  }

  type Answer = readonly [status: number, body?: Json]
  const route = (
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    run: (scope: ScimScope, request: ScimRequest) => Promise<Answer> | Answer,
  ) =>
    app.add(method, `${PREFIX}${path}`, async (request) => {
      app.bodyDeadline(request.response)
      const body = await request.body(BODY_BYTES_MAX)
      const { id = '' } = request.params
      const { url = '' } = request.raw
      const query: Json = Object.fromEntries(new URLSearchParams(rawQuery(request)))
      try {
        return answerOf(...(await run(await scopeOf(request), { body, id, url, query })))
      } catch (error) {
        const told = scimErrorOf(error)
        if (!told) throw error
        return answerOf(told.status, errorBody(told))
      }
    })

  for (const kind of kinds) {
    route('GET', kind.path, async (scope, request) => [
      200,
      page(await kind.list(scope), request.query, (one) => withAddresses(kind, one)),
    ])
    route('POST', kind.path, async (scope, request) => [
      201,
      withAddresses(kind, await kind.create(scope, bodyOf(request.body))),
    ])
    route('GET', `${kind.path}/{id}`, async (scope, request) => [
      200,
      selected(withAddresses(kind, await kind.get(scope, request.id)), request.query),
    ])
    route('PUT', `${kind.path}/{id}`, async (scope, request) => [
      200,
      withAddresses(kind, await kind.replace(scope, request.id, () => bodyOf(request.body))),
    ])
    route('PATCH', `${kind.path}/{id}`, async (scope, request) => {
      const next: Next = (was) => patched(was, bodyOf(request.body), kind.names)
      return [200, withAddresses(kind, await kind.replace(scope, request.id, next))]
    })
    route('POST', `${kind.path}/.search`, async (scope, request) => [
      200,
      page(await kind.list(scope), searchOf(request.body), (one) => withAddresses(kind, one)),
    ])
    route('DELETE', `${kind.path}/{id}`, async (scope, request) => {
      await kind.remove(scope, request.id)
      return [204]
    })
  }
  route('POST', '/.search', async (scope, request) => {
    const all = await Promise.all(
      kinds.map(async (kind) => (await kind.list(scope)).map((one) => withAddresses(kind, one))),
    )
    return [200, page(all.flat(), searchOf(request.body), (one) => one)]
  })
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const)
    route(method, '/*', (_scope, { url }) => {
      const isRead = READ_ONLY.some((path) => url.startsWith(`${PREFIX}${path}`))
      if (isRead && method !== 'GET') throw new ScimError(405, 'This address takes GET.')
      throw new ScimError(404, 'There is nothing at this address.')
    })
  for (const [path, entries] of Object.entries(descriptions(at))) {
    route('GET', path, (_scope, request) => [200, page(entries, request.query, (one) => one)])
    route('GET', `${path}/{id}`, (_scope, request) => {
      const found = entries.find(({ id }) => id === request.id)
      if (!found) throw new ScimError(404, 'There is no such description.')
      return [200, found]
    })
  }
  route('GET', '/ServiceProviderConfig', () => [200, providerConfig(at)])
}

function answerOf(status: number, body?: Json): WebAnswer {
  if (!body) return { status, headers: NO_STORE }
  const { location } = isObject(body.meta) ? body.meta : {}
  return {
    status,
    headers: {
      ...NO_STORE,
      'content-type': 'application/scim+json; charset=utf-8',
      ...(status === 201 && typeof location === 'string' ? { location } : {}),
    },
    body: JSON.stringify(body),
  }
}

const NO_STORE = { 'cache-control': 'no-store' }

const errorBody = ({ status, message, scimType }: ScimError): Json => ({
  schemas: [ERROR_SCHEMA],
  status: String(status),
  detail: message,
  ...(scimType ? { scimType } : {}),
})

/** `/.search` has in its body what a list has in its query string. */
function searchOf(body: Buffer): Json {
  const entries = Object.entries(bodyOf(body)).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(',') : typeof value === 'number' ? String(value) : value,
  ])
  return Object.fromEntries(entries) as Json // An object again.
}

function bodyOf(body: Buffer): Json {
  try {
    const parsed: unknown = JSON.parse(body.toString('utf8'))
    if (isObject(parsed)) return parsed
  } catch {
    // Said below.
  }
  throw new ScimError(400, 'The body must be a JSON object.', 'invalidSyntax')
}

function page(all: readonly Json[], query: Json, show: (one: Json) => Json): Json {
  const { filter, startIndex, count } = query
  const fits = typeof filter === 'string' && filter !== '' ? readFilter(filter) : undefined
  const found = fits ? all.filter(fits) : all
  const from = Math.max(1, wholeOf(startIndex, 1))
  const size = Math.min(PAGE_MAX, Math.max(0, wholeOf(count, PAGE_MAX)))
  const items = found.slice(from - 1, from - 1 + size).map((one) => selected(show(one), query))
  return {
    schemas: [LIST_SCHEMA],
    totalResults: found.length,
    startIndex: from,
    itemsPerPage: items.length,
    Resources: items,
  }
}

function wholeOf(given: unknown, otherwise: number): number {
  if (given === undefined) return otherwise
  if (typeof given !== 'string' || !/^-?\d{1,9}$/.test(given))
    throw new ScimError(400, 'startIndex and count must be whole numbers.', 'invalidValue')
  return Number(given)
}

const ALWAYS = new Set(['schemas', 'id'])

/** Applies `attributes` and `excludedAttributes`. */
function selected(resource: Json, query: Json): Json {
  const { attributes, excludedAttributes } = query
  const namesOf = (list: unknown) =>
    typeof list === 'string'
      ? new Set(list.split(',').map((name) => name.trim().split(/[.:]/).at(0)?.toLowerCase()))
      : undefined
  const [wanted, unwanted] = [namesOf(attributes), namesOf(excludedAttributes)]
  if (!wanted && !unwanted) return resource
  const isShown = (name: string) =>
    ALWAYS.has(name) || (wanted ? wanted.has(name.toLowerCase()) : !unwanted?.has(name.toLowerCase()))
  return Object.fromEntries(Object.entries(resource).filter(([name]) => isShown(name)))
}

// The service provider configuration, for clients that read it.

interface Attribute {
  readonly name: string
  readonly description: string
  readonly type?: 'string' | 'boolean' | 'complex' | 'reference'
  readonly required?: true
  readonly many?: true
  readonly readOnly?: true
  readonly unique?: true
  readonly exact?: true
  readonly parts?: readonly Attribute[]
}

const USER_ATTRIBUTES: readonly Attribute[] = [
  {
    name: 'userName',
    description: 'The name in the directory, often the email address.',
    required: true,
    unique: true,
  },
  {
    name: 'active',
    description: 'Whether the person belongs here. False signs them out.',
    type: 'boolean',
    required: true,
  },
  { name: 'displayName', description: 'The name to show.' },
  {
    name: 'name',
    description: 'The parts of the name.',
    type: 'complex',
    parts: [
      { name: 'formatted', description: 'The whole name.' },
      { name: 'familyName', description: 'The family name.' },
      { name: 'givenName', description: 'The given name.' },
    ],
  },
  {
    name: 'emails',
    description: 'The primary one is the login.',
    type: 'complex',
    many: true,
    required: true,
    parts: [
      { name: 'value', description: 'The address.', required: true },
      { name: 'type', description: 'Such as work.' },
      { name: 'primary', description: 'The one to use.', type: 'boolean' },
    ],
  },
  {
    name: 'groups',
    description: 'The groups of the person.',
    type: 'complex',
    many: true,
    readOnly: true,
    parts: [
      { name: 'value', description: 'The id of the group.', readOnly: true },
      { name: 'display', description: 'Its name.', readOnly: true },
    ],
  },
]
const GROUP_ATTRIBUTES: readonly Attribute[] = [
  {
    name: 'displayName',
    description: 'A group that is called like a role gives that role; one that a team names says who is in the team.',
    required: true,
    unique: true,
  },
  {
    name: 'members',
    description: 'The people in it.',
    type: 'complex',
    many: true,
    parts: [
      { name: 'value', description: 'The id of a user.' },
      { name: '$ref', description: 'The address of the user.', type: 'reference' },
    ],
  },
]

function attribute({
  name,
  description,
  type = 'string',
  required,
  many,
  readOnly,
  unique,
  exact,
  parts,
}: Attribute): Json {
  return {
    name,
    type,
    description,
    multiValued: many ?? false,
    required: required ?? false,
    returned: 'default',
    mutability: readOnly ? 'readOnly' : 'readWrite',
    uniqueness: unique ? 'server' : 'none',
    ...(type === 'string' ? { caseExact: exact ?? false } : {}),
    ...(type === 'reference' ? { referenceTypes: ['User'], caseExact: true } : {}),
    ...(parts ? { subAttributes: parts.map(attribute) } : {}),
  }
}

function descriptions(at: (path: string) => string): Record<'/Schemas' | '/ResourceTypes', readonly Json[]> {
  const schema = (id: string, name: string, attributes: readonly Attribute[]): Json => ({
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:Schema'],
    id,
    name,
    description: name,
    attributes: attributes.map(attribute),
    get meta() {
      return { resourceType: 'Schema', location: at(`/Schemas/${id}`) }
    },
  })
  const type = (id: string, endpoint: string, schemaId: string): Json => ({
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:ResourceType'],
    id,
    name: id,
    description: id,
    endpoint,
    schema: schemaId,
    get meta() {
      return { resourceType: 'ResourceType', location: at(`/ResourceTypes/${id}`) }
    },
  })
  return {
    '/Schemas': [schema(USER_SCHEMA, 'User', USER_ATTRIBUTES), schema(GROUP_SCHEMA, 'Group', GROUP_ATTRIBUTES)],
    '/ResourceTypes': [type('User', '/Users', USER_SCHEMA), type('Group', '/Groups', GROUP_SCHEMA)],
  }
}

function providerConfig(at: (path: string) => string): Json {
  const no = { supported: false }
  return {
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig'],
    patch: { supported: true },
    sort: no,
    etag: no,
    changePassword: no,
    bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
    filter: { supported: true, maxResults: PAGE_MAX },
    authenticationSchemes: [
      { type: 'oauthbearertoken', name: 'Token', description: 'A token with the scope scim.', primary: true },
    ],
    meta: { resourceType: 'ServiceProviderConfig', location: at('/ServiceProviderConfig') },
  }
}
