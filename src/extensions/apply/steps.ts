// Shared parts of `tollgate apply`: a plan is a list of steps with sentences, and entries are identified by id or name.

import type { KeyView, TeamView } from '../../admission/views.ts'
import type { Api } from '../../cli/api.ts'
import { at, CliError } from '../../cli/command.ts'
import { query } from '../../cli/table.ts'
import type { MemberView, PendingInvite } from '../../identity/views.ts'
import { nearest } from '../../kernel/nearest.ts'
import type { Page } from '../../kernel/view.ts'
import type { World } from '../../kernel/world.ts'
import type { DeclarationFile, DeclaredAccount } from './file.ts'
import type { SecretReferences } from './secret-reference.ts'

export interface Step {
  readonly kind: 'create' | 'change' | 'remove'
  /** The sentences of one change, or of several in one step. */
  readonly sentences: readonly string[]
  /** Returns what is shown once: the value of a new key, or the link of an invitation. */
  run(): Promise<Shown | undefined>
}

export interface Shown {
  readonly what: string
  readonly value: string
}

export interface Plan {
  readonly steps: readonly Step[]
  /** Notes: entries that are not in the file, and what is not changed. */
  readonly notes: readonly string[]
}

export interface Context {
  readonly api: Api
  readonly world: World
  readonly file: DeclarationFile
  readonly secrets: SecretReferences
  readonly prune: boolean
}

/** Each part adds its steps and notes in the order in which they are to run. */
export class Draft implements Plan {
  readonly steps: Step[] = []
  readonly notes: string[] = []
}

/** An entry whose id is known if it exists or was just created. */
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

export async function secretAt({ read }: SecretReferences, reference: string, place: string): Promise<string> {
  return read(reference).catch((error: unknown) => {
    throw new CliError(`${place}: ${error instanceof Error ? error.message : 'it cannot be read.'}`)
  })
}

/** Finds an entry by id, otherwise by name. */
export function oneOf<T extends { readonly id: string; readonly name: string }>(
  where: string,
  { id, name }: { readonly id?: string | undefined; readonly name: string },
  there: readonly T[],
): T | undefined {
  if (id !== undefined) {
    const known = there.find((one) => one.id === id)
    if (!known) throw new CliError(`${where} ${id} does not exist or has ended. Leave out the id to create a new one.`)
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

/** Compares values; the order of lists and members does not matter. */
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

// Teams, projects, keys and people of an account. Budgets and keys in the file refer to them by name.

/** The name of a team, or team/project for a project. */
export interface TeamPlace extends Place {
  readonly isProject: boolean
}

export interface Inside {
  readonly teams: readonly TeamView[]
  readonly keys: readonly KeyView[]
  readonly members: readonly MemberView[]
  readonly invited: readonly PendingInvite[]
  /** Existing teams and those that the file creates. */
  readonly teamPlaces: TeamPlace[]
  readonly keyPlaces: Place[]
  /**
   * Finds one by name or id. Without an id it will be created; undefined: the person has not accepted an invitation
   * yet.
   */
  find(scope: string, name: string, where: string): Place | undefined
}

/** An account that will be created has none of these. */
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

/**
 * Excludes OAuth connections, which people create, replaced keys, which expire, and test keys, which budgets do not
 * count.
 */
function livingKeys(keys: readonly KeyView[]): KeyView[] {
  return keys.filter(({ revokedAt, client, test }) => revokedAt === null && client === null && !test)
}

/** A budget of a key refers to the first key in a chain of rotations. */
export function latestKey(keys: readonly KeyView[], id: string): string {
  const next = keys.find((key) => key.id === id)?.replacedBy
  return next ? latestKey(keys, next) : id
}

/** How the file refers to an existing team, project, key or member: by name, or by id if the name is not unique. */
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
