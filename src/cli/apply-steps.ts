// What the parts of `tollgate apply` share: a plan is steps with their sentences, and things are known by their id or their name.

import type { KeyView, TeamView } from '../admission/views.ts'
import type { MemberView, PendingInvite } from '../identity/views.ts'
import { nearest } from '../kernel/nearest.ts'
import type { Page } from '../kernel/view.ts'
import type { World } from '../kernel/world.ts'
import type { Api } from './api.ts'
import type { DeclarationFile, DeclaredAccount } from './apply-file.ts'
import { at, CliError } from './command.ts'
import type { SecretReferences } from './secret-reference.ts'
import { query } from './table.ts'

export interface Step {
  readonly kind: 'create' | 'change' | 'remove'
  /** One change, or several that are made together. */
  readonly sentences: readonly string[]
  /** What is to be shown once: the value of a new key, or the link of an invitation. */
  run(): Promise<Shown | undefined>
}

export interface Shown {
  readonly what: string
  readonly value: string
}

export interface Plan {
  readonly steps: readonly Step[]
  /** What should be known besides: what is there and not in the file, and what is left alone. */
  readonly notes: readonly string[]
}

export interface Context {
  readonly api: Api
  readonly world: World
  readonly file: DeclarationFile
  readonly secrets: SecretReferences
  readonly prune: boolean
}

/** Steps and notes are added by each part in the order in which they are to be made. */
export class Draft implements Plan {
  readonly steps: Step[] = []
  readonly notes: string[] = []
}

/** Whose id is known when it is there or has been made. */
export interface Place {
  readonly name: string
  id: string | undefined
}

export async function allPages<T>(api: Api, path: string): Promise<T[]> {
  const rows: T[] = []
  let cursor: string | undefined
  do {
    const page: Page<T> = await api.call<Page<T>>('GET', path + query({ limit: '200', cursor }))
    rows.push(...page.items)
    cursor = page.next ?? undefined
  } while (cursor !== undefined)
  return rows
}

/** By its id, else by its name. */
export function oneOf<T extends { readonly id: string; readonly name: string }>(
  where: string,
  { id, name }: { readonly id?: string | undefined; readonly name: string },
  there: readonly T[],
): T | undefined {
  if (id !== undefined) {
    const known = there.find((one) => one.id === id)
    if (!known) throw new CliError(`${where} ${id} is not there, or has ended. Leave the id out to make a new one.`)
    return known
  }
  const same = there.filter((one) => one.name === name)
  if (same.length > 1)
    throw new CliError(
      `${where} "${name}" is there ${same.length} times. Say which by its id: ${same.map((one) => one.id).join(', ')}.`,
    )
  return same[0]
}

export interface Spot {
  readonly draft: Draft
  readonly path: readonly PropertyKey[]
}

const NAMES_MAX = 10

export function notInFile(subject: string, names: readonly string[]): string {
  const left = names.length - NAMES_MAX
  const shown = names.slice(0, NAMES_MAX).join(', ') + (left > 0 ? ` and ${left} more` : '')
  return `${subject} ${shown}, not in the file. They stay; --prune removes them.`
}

/** The order of a list says nothing, and neither does that of members. */
export function isSame(a: unknown, b: unknown): boolean {
  const sorted = (_: string, value: unknown) => {
    if (Array.isArray(value)) return [...value].sort()
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
  }
  return JSON.stringify(a ?? null, sorted) === JSON.stringify(b ?? null, sorted)
}

export function inWords(value: unknown): string {
  if (value === null || value === undefined) return 'none'
  return Array.isArray(value) ? value.join(', ') : String(value)
}

// What is inside an account and named by the file of `tollgate apply`: its teams and projects, keys and people. Budgets and keys refer to them by name.

/** A team is called by its name, a project team/project. */
export interface TeamPlace extends Place {
  readonly isProject: boolean
}

export interface Inside {
  readonly teams: readonly TeamView[]
  readonly keys: readonly KeyView[]
  readonly members: readonly MemberView[]
  readonly invited: readonly PendingInvite[]
  /** Those that are there and those that the file makes. */
  readonly teamPlaces: TeamPlace[]
  readonly keyPlaces: Place[]
  /** By its name or id. Without an id it is yet to be made; undefined: somebody who has not accepted an invitation. */
  find(scope: string, name: string, where: string): Place | undefined
}

/** Of an account that is yet to be made there is nothing. */
export async function readInside(api: Api, account: Place, wanted: DeclaredAccount): Promise<Inside> {
  const of = (what: string) => at`/accounts/${account.id}/${what}`
  const all = async <T>(what: string) => (account.id === undefined ? [] : await allPages<T>(api, of(what)))
  const list = async <T>(what: string) =>
    account.id === undefined ? [] : (await api.call<Page<T>>('GET', of(what))).items
  const keys = await all<KeyView>('keys')
  const teams = await list<TeamView>('teams')
  const members = await list<MemberView>('members')
  const invited = await list<PendingInvite>('invites')
  const teamPlaces: TeamPlace[] = []
  const keyPlaces: Place[] = livingKeys(keys).map(({ id, name }) => ({ id, name }))
  const people = members.map(({ userId: id, email: name }) => ({ id, name }))
  const expected = new Set([...invited, ...(wanted.members ?? [])].map(({ email }) => email))

  function find(scope: string, name: string, where: string): Place | undefined {
    const listed = listOf(scope)
    if (!listed) return { id: name, name }
    const named = listed.filter((one) => one.id === name || one.name === name)
    if (named.length > 1)
      throw new CliError(
        `${where}: "${name}" is there ${named.length} times in ${account.name}. Say which by its id: ${named.map(({ id }) => id).join(', ')}.`,
      )
    if (named[0] || (scope === 'member' && expected.has(name))) return named[0]
    const near = nearest(
      name,
      listed.map((one) => one.name),
    )
    throw new CliError(
      `${where}: ${account.name} has no ${scope} "${name}".${near === undefined ? '' : ` Did you mean "${near}"?`}`,
    )
  }

  function listOf(scope: string): readonly Place[] | undefined {
    if (scope === 'key') return keyPlaces
    if (scope === 'member') return people
    if (scope === 'team or project') return teamPlaces
    if (scope !== 'team' && scope !== 'project') return undefined
    return teamPlaces.filter(({ isProject }) => isProject === (scope === 'project'))
  }

  return { teams, keys, members, invited, teamPlaces, keyPlaces, find }
}

/** Connections are made by people, by OAuth, and a replaced key ends by itself. Budgets do not count test keys. */
function livingKeys(keys: readonly KeyView[]): KeyView[] {
  return keys.filter(({ revokedAt, client, test }) => revokedAt === null && client === null && !test)
}

/** A budget of a key is kept under the first of the keys that replaced each other. */
export function latestKey(keys: readonly KeyView[], id: string): string {
  const next = keys.find((key) => key.id === id)?.replacedBy
  return next ? latestKey(keys, next) : id
}

/** What the file calls a team, a project, a key or a member that is there: its name, or its id if another has the name too. */
export function nameIn({ teams, keys, members }: Pick<Inside, 'teams' | 'keys' | 'members'>) {
  const titles = teams.map((team) => ({ id: team.id, name: pathOf(team, teams) }))
  const living = livingKeys(keys)
  const people = members.map(({ userId: id, email: name }) => ({ id, name }))
  return (scope: string, id: string): string => {
    if (scope === 'key') return called(living, latestKey(keys, id))
    if (scope === 'team' || scope === 'project') return called(titles, id)
    return scope === 'member' ? called(people, id) : id
  }
}

function called(listed: readonly { readonly id: string; readonly name: string }[], id: string): string {
  const name = listed.find((one) => one.id === id)?.name
  return name === undefined || listed.some((one) => one.id !== id && one.name === name) ? id : name
}

function pathOf({ name, parentId }: TeamView, teams: readonly TeamView[]): string {
  const parent = teams.find(({ id }) => id === parentId)
  return parent ? `${parent.name}/${name}` : name
}
