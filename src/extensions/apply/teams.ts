// Teams, projects and budgets in the plan of `tollgate apply`.
import type { TeamView } from '../../admission/views.ts'
import { at, CliError } from '../../cli/command.ts'
import { query } from '../../cli/table.ts'
import type { Page } from '../../kernel/view.ts'
import type { BudgetValueView, BudgetView } from '../../ledger/views.ts'
import { spanWords } from '../../meter/limits.ts'
import { type DeclaredBudget, type DeclaredTeam, VALUES_MAX } from './file.ts'
import {
  type Context,
  type Inside,
  inWords,
  latestKey,
  notInFile,
  oneOf,
  type Place,
  type Spot,
  type TeamPlace,
} from './steps.ts'

/** One account of the plan. */
export interface Account {
  readonly context: Context
  readonly place: Place
  readonly inside: Inside
  readonly spot: Spot
}

/**
 * Returns a function that removes teams that are not in the file, to be called after their keys and budgets are
 * removed.
 */
export function planTeams(account: Account, wanted: readonly DeclaredTeam[] | undefined): () => void {
  const { inside, spot } = account
  const teams = inside.teams.filter(({ parentId }) => parentId === null)
  const extra: { readonly name: string; readonly view: TeamView }[] = []
  const named = new Set<string>()
  for (const [index, team] of (wanted ?? []).entries()) {
    const path = [...spot.path, 'teams', index]
    const known = oneOf(`${account.context.file.at(path)}: team`, team, teams)
    const parent = planTeam(account, team, known, { draft: spot.draft, path })
    if (known) named.add(known.id)
    const projects = inside.teams.filter(({ parentId }) => known && parentId === known.id)
    const kept = new Set<string>()
    for (const [at, project] of (team.projects ?? []).entries()) {
      const inner = [...path, 'projects', at]
      const there = oneOf(`${account.context.file.at(inner)}: project`, project, projects)
      planTeam(account, project, there, { draft: spot.draft, path: inner, parent })
      if (there) kept.add(there.id)
    }
    for (const view of projects.filter(({ id }) => !kept.has(id)))
      if (team.projects) extra.push({ name: `${team.name}/${view.name}`, view })
      else inside.teamPlaces.push({ id: view.id, name: `${team.name}/${view.name}`, isProject: true })
  }
  for (const view of teams.filter(({ id }) => !named.has(id))) {
    const projects = inside.teams.filter(({ parentId }) => parentId === view.id)
    const all = [...projects.map((one) => ({ name: `${view.name}/${one.name}`, view: one })), { name: view.name, view }]
    if (wanted) extra.push(...all)
    else for (const { name, view: one } of all) inside.teamPlaces.push(placeOf(name, one))
  }
  // Teams that are not in the file stay, unless `--prune` is given, so budgets may refer to them.
  if (!account.context.prune) for (const { name, view } of extra) inside.teamPlaces.push(placeOf(name, view))
  return () => removeTeams(account, extra)
}

const placeOf = (name: string, { id, parentId }: TeamView): TeamPlace => ({ id, name, isProject: parentId !== null })

function removeTeams(
  { context, place, spot: { draft } }: Account,
  extra: readonly { readonly name: string; readonly view: TeamView }[],
): void {
  if (extra.length === 0) return
  if (!context.prune) {
    const names = extra.map(({ name }) => name)
    draft.notes.push(notInFile(`Account ${place.name} has the teams`, names))
    return
  }
  for (const { name, view } of extra)
    draft.steps.push({
      kind: 'remove',
      sentences: [`${view.parentId === null ? 'Team' : 'Project'} ${name} of ${place.name} is removed.`],
      run: async () => void (await context.api.call('DELETE', at`/accounts/${place.id}/teams/${view.id}`)),
    })
}

function planTeam(
  { context: { api, file }, place: account, inside }: Account,
  wanted: Pick<DeclaredTeam, 'name' | 'members' | 'scimGroup'>,
  known: TeamView | undefined,
  { draft, path, parent }: Spot & { readonly parent?: TeamPlace },
): TeamPlace {
  const name = parent ? `${parent.name}/${wanted.name}` : wanted.name
  const place: TeamPlace = { id: known?.id, name, isProject: parent !== undefined }
  inside.teamPlaces.push(place)
  const subject = `${parent ? 'Project' : 'Team'} ${name} of ${account.name}`
  if (!known)
    draft.steps.push({
      kind: 'create',
      sentences: [`${subject} is created.`],
      async run() {
        const body = { name: wanted.name, parentId: parent?.id ?? null }
        place.id = (await api.call<TeamView>('POST', at`/accounts/${account.id}/teams`, body)).id
        return undefined
      },
    })
  else if (known.name !== wanted.name)
    draft.steps.push({
      kind: 'change',
      sentences: [`${subject} is renamed; it was ${known.name}.`],
      run: async () =>
        void (await api.call('PATCH', at`/accounts/${account.id}/teams/${known.id}`, { name: wanted.name })),
    })
  const { scimGroup } = wanted
  const group = known?.scimGroup ?? null
  if (scimGroup !== undefined && scimGroup !== group)
    draft.steps.push({
      kind: 'change',
      sentences: [
        scimGroup === null
          ? `${subject} keeps its members; the directory’s group ${group} no longer says who is in it.`
          : `The directory’s group ${scimGroup} says who is in ${subject}.`,
      ],
      run: async () => void (await api.call('PATCH', at`/accounts/${account.id}/teams/${place.id}`, { scimGroup })),
    })
  if (!wanted.members) return place
  if ((scimGroup === undefined ? group : scimGroup) !== null)
    throw new CliError(`${file.at([...path, 'members'])}: the directory’s group says who is in ${subject}.`)
  const there = known?.members ?? []
  const userIds: string[] = []
  const joins: string[] = []
  for (const [index, email] of wanted.members.entries()) {
    const person = inside.find('member', email, file.at([...path, 'members', index]))
    if (!person)
      draft.notes.push(`${email} joins ${subject} when the invitation is accepted and the file applied again.`)
    else userIds.push(person.id ?? '')
    if (person && !there.some((one) => one.userId === person.id)) joins.push(`${email} joins ${subject}.`)
  }
  const leaves = there
    .filter(({ userId }) => !userIds.includes(userId))
    .map(({ email }) => `${email} leaves ${subject}.`)
  if (joins.length + leaves.length > 0)
    draft.steps.push({
      kind: 'change',
      sentences: [...joins, ...leaves],
      run: async () => void (await api.call('PUT', at`/accounts/${account.id}/teams/${place.id}/members`, { userIds })),
    })
  return place
}

// Budgets.

export async function planBudgets(account: Account, wanted: readonly DeclaredBudget[]): Promise<void> {
  const { context, place, spot } = account
  const path = at`/accounts/${place.id}/budgets`
  const there = place.id === undefined ? [] : (await context.api.call<Page<BudgetView>>('GET', path)).items
  const found = new Set<string>()
  for (const [index, budget] of wanted.entries()) {
    const inner = [...spot.path, 'budgets', index]
    const known = oneOf(`${context.file.at(inner)}: budget`, budget, there)
    if (known) found.add(known.id)
    await planBudget(account, budget, known, inner)
  }
  const others = there.filter(({ id }) => !found.has(id))
  if (!context.prune && others.length > 0)
    spot.draft.notes.push(
      notInFile(
        `Account ${place.name} has the budgets`,
        others.map(({ name }) => name),
      ),
    )
  if (context.prune)
    for (const { id, name } of others)
      spot.draft.steps.push({
        kind: 'remove',
        sentences: [`Budget ${name} of ${place.name} is ended, and what it counted is forgotten.`],
        run: async () => void (await context.api.call('DELETE', at`/accounts/${place.id}/budgets/${id}`)),
      })
}

async function planBudget(
  account: Account,
  wanted: DeclaredBudget,
  known: BudgetView | undefined,
  path: readonly PropertyKey[],
): Promise<void> {
  const { context, place, inside, spot } = account
  const { draft } = spot
  const { scope, value, unit, span, windowSeconds = null, max, hard, alertPercent } = wanted
  const subject = `Budget ${wanted.name} of ${place.name}`
  const was = known?.value == null ? undefined : currentId(inside, scope, known.value)
  const target =
    value === undefined
      ? null
      : was === value
        ? { id: value, name: value }
        : inside.find(scope, value, context.file.at([...path, 'value']))
  if (target === undefined) {
    draft.notes.push(`${subject} is made when ${value} has accepted the invitation and the file is applied again.`)
    return
  }
  const words = `${target === null ? `each ${scope}` : `${scope} ${value}`} may use ${max} ${unit} ${spanWords(span, windowSeconds)}`
  const made: Place = { id: known?.id, name: wanted.name }
  const create = async () => {
    const counted = { scope, value: target?.id ?? null, unit, span, windowSeconds }
    const body = { name: wanted.name, ...counted, max, hard, alertPercent }
    made.id = (await context.api.call<BudgetView>('POST', at`/accounts/${place.id}/budgets`, body)).id
  }
  // What a budget counts cannot be changed, so it is replaced: the new one is created before the old one is removed.
  const isOther = known && !countsTheSame(known, { ...wanted, value: target?.id ?? null, windowSeconds }, inside)
  if (!known)
    draft.steps.push({
      kind: 'create',
      sentences: [`${subject} is created: ${words}${hard ? '' : '; it only counts and alerts'}.`],
      run: async () => void (await create()),
    })
  else if (isOther)
    draft.steps.push({
      kind: 'change',
      sentences: [`${subject} starts again: ${words}. What it counted is forgotten.`],
      async run() {
        await create()
        await context.api.call('DELETE', at`/accounts/${place.id}/budgets/${known.id}`)
        return undefined
      },
    })
  else changeBudget(account, wanted, known, subject)
  if (wanted.values) await planValues(account, wanted, { made, subject, path, known: isOther ? undefined : known })
}

/** The id of the budget's subject today: a budget of a key refers to the first key of its rotations. */
const currentId = ({ keys }: Inside, scope: string, id: string) => (scope === 'key' ? latestKey(keys, id) : id)

/** Whether two budgets have the same scope, value, unit and span. */
function countsTheSame(
  known: BudgetView,
  wanted: Pick<BudgetView, 'scope' | 'value' | 'unit' | 'span' | 'windowSeconds'>,
  inside: Inside,
): boolean {
  const value = known.value === null ? null : currentId(inside, known.scope, known.value)
  return (
    value === wanted.value &&
    (['scope', 'unit', 'span', 'windowSeconds'] as const).every((field) => known[field] === wanted[field])
  )
}

const FIELDS = { max: 'maximum', hard: 'hard', alertPercent: 'alert at percent' } as const

function changeBudget({ context, place, spot }: Account, wanted: DeclaredBudget, known: BudgetView, subject: string) {
  // The table's own names.
  const fields = (Object.keys(FIELDS) as (keyof typeof FIELDS)[]).filter((name) => wanted[name] !== known[name])
  const renamed = known.name === wanted.name ? [] : [`Budget ${known.name} is renamed ${wanted.name}.`]
  if (fields.length + renamed.length === 0) return
  const patch = { name: wanted.name, ...Object.fromEntries(fields.map((name) => [name, wanted[name]])) }
  spot.draft.steps.push({
    kind: 'change',
    sentences: [
      ...renamed,
      ...fields.map((name) => `${subject}: ${FIELDS[name]} ${inWords(known[name])} becomes ${inWords(wanted[name])}.`),
    ],
    run: async () => void (await context.api.call('PATCH', at`/accounts/${place.id}/budgets/${known.id}`, patch)),
  })
}

/** The maximums of single values. */
async function planValues(
  { context, place, inside, spot: { draft } }: Account,
  { scope, values = new Map() }: DeclaredBudget,
  about: {
    readonly made: Place
    readonly subject: string
    readonly path: readonly PropertyKey[]
    readonly known: BudgetView | undefined
  },
): Promise<void> {
  const { made, subject, path, known } = about
  const { api } = context
  const listed = known
    ? await api.call<Page<BudgetValueView>>(
        'GET',
        at`/accounts/${place.id}/budgets/${known.id}/values` + query({ overridden: 'true', limit: String(VALUES_MAX) }),
      )
    : { items: [] }
  const there = new Map(listed.items.map((one) => [currentId(inside, scope, one.value), one]))
  const set = (kind: 'change' | 'remove', sentence: string, value: () => string | undefined, max: string | null) =>
    draft.steps.push({
      kind,
      sentences: [sentence],
      run: async () =>
        void (await api.call('PUT', at`/accounts/${place.id}/budgets/${made.id}/values`, { value: value(), max })),
    })
  for (const [name, max] of values) {
    const target = there.has(name)
      ? { id: name, name }
      : inside.find(scope, name, context.file.at([...path, 'values', name]))
    const was = there.get(target?.id ?? '')
    there.delete(target?.id ?? '')
    if (!target) draft.notes.push(`${subject}: ${name} has not accepted the invitation, and gets ${max} afterwards.`)
    else if (was?.max !== max)
      set('change', `${subject}: ${name} may use ${max}${was ? ` instead of ${was.max}` : ''}.`, () => target.id, max)
  }
  if (there.size === 0) return
  if (!context.prune) draft.notes.push(notInFile(`${subject} has maxima for`, [...there.keys()]))
  else
    for (const [id, { value }] of there)
      set('remove', `${subject}: ${id} has no maximum of its own any more.`, () => value, null)
}
