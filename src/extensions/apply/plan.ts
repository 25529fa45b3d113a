// Compares the file of `tollgate apply` with the gateway, and makes a list of steps: each has a sentence and an action.
// Nothing is changed here.
import type { KeyView, NewKey } from '../../admission/views.ts'
import { describeChanges } from '../../catalog/change-sentences.ts'
import { checkDocument, credentialsOf } from '../../catalog/document.ts'
import { sectionReviews } from '../../catalog/section.ts'
import type { Applied, CurrentView } from '../../catalog/views.ts'
import { at, CliError } from '../../cli/command.ts'
import { query } from '../../cli/table.ts'
import { fingerprintOf } from '../../kernel/secret.ts'
import type { Page } from '../../kernel/view.ts'
import type { AccountView } from '../../ledger/views.ts'
import { LIMITS, type LimitName, type LimitsView, limitWords } from '../../meter/limits.ts'
import type { VendorCredentialView } from '../../operator/views.ts'
import type { DeclaredAccount, DeclaredKey } from './file.ts'
import { planPurses } from './purses.ts'
import {
  allPages,
  type Context,
  Draft,
  type Inside,
  inWords,
  isSame,
  notInFile,
  oneOf,
  type Place,
  type Plan,
  readInside,
  type Spot,
  secretAt,
} from './steps.ts'
import { type Account, planBudgets, planTeams } from './teams.ts'

export async function makePlan(context: Context): Promise<Plan> {
  const draft = new Draft()
  const { declared } = context.file
  if (declared.catalog || declared.vendors) await planCatalog(context, draft)
  if (declared.limits) await planSystemLimits(context, declared.limits, draft)
  if (declared.accounts) await planAccounts(context, declared.accounts, draft)
  return draft
}

// The catalog, its vendors and their secrets: one document, stored together with the secrets or not at all.

type Tree = Readonly<Record<string, unknown>>
const SHELVES: readonly string[] = ['models', 'endpoints', 'families']
const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)

async function planCatalog(context: Context, draft: Draft): Promise<void> {
  const { api } = context
  const { version, document: current } = await api.call<CurrentView>('GET', '/catalog')
  const document = wantedDocument(context, current, draft)
  const differences = describeChanges(current, document, sectionReviews())
  const isOther = differences.length > 0 && JSON.stringify(sorted(current)) !== JSON.stringify(sorted(document))
  if (isOther) checkCatalog(context, document)
  const values = await changedSecrets(context, current, document, draft)
  const stored = [...values.keys()].map((name) => `The credential ${name} gets a new value.`)
  if (!isOther && values.size === 0) return
  draft.steps.push({
    kind: 'change',
    sentences: [...(isOther ? differences : []), ...stored],
    async run() {
      await api.call<Applied>('PUT', '/catalog', {
        document: isOther ? document : current,
        note: 'tollgate apply',
        basedOn: version,
        ...(values.size > 0 ? { credentials: Object.fromEntries(values) } : {}),
      })
      return undefined
    },
  })
}

/**
 * The current catalog with the entries of the file. Entries that are not in the file stay, unless `--prune` is given.
 */
function wantedDocument({ file, prune }: Context, current: Tree, draft: Draft): Tree {
  const { catalog, vendors } = file.declared
  const wanted: Record<string, unknown> = { ...current }
  const left: string[] = []
  const shelf = (what: string, given: Tree) => {
    const old = isTree(current[what]) ? current[what] : {}
    const missing = Object.keys(old).filter((name) => !Object.hasOwn(given, name))
    if (!prune) left.push(...missing.map((name) => `${what}.${name}`))
    const kept = Object.entries(old).filter(([name]) => !prune || Object.hasOwn(given, name))
    wanted[what] = { ...Object.fromEntries(kept), ...given }
  }
  for (const [name, value] of Object.entries(catalog ?? {}))
    if (SHELVES.includes(name) && isTree(value)) shelf(name, value)
    else wanted[name] = value
  if (catalog)
    for (const name of Object.keys(current))
      if (name !== 'vendors' && !Object.hasOwn(catalog, name)) {
        if (prune) delete wanted[name]
        else left.push(name)
      }
  if (vendors) {
    const old = isTree(current.vendors) ? current.vendors : {}
    // An entry with secrets only does not change the rest of the vendor.
    const given = Object.entries(vendors).map(([name, { entry }]) => {
      if (Object.keys(entry).length > 0) return [name, entry] as const
      if (!Object.hasOwn(old, name))
        throw new CliError(`${file.at(['vendors', name])}: the catalog has no vendor "${name}"; give its baseUrl.`)
      return [name, old[name]] as const
    })
    shelf('vendors', Object.fromEntries(given))
  }
  if (left.length > 0) draft.notes.push(notInFile('The catalog has', left))
  return wanted
}

/** Checks the document, and adds the position in the file to each problem. The gateway checks it again. */
function checkCatalog({ file }: Context, document: Tree): void {
  const checked = checkDocument(document)
  if (checked.ok) return
  const problems = checked.problems.map((problem, index) => {
    const path = checked.paths[index] ?? []
    return `${file.at(path[0] === 'vendors' ? path : ['catalog', ...path])}: ${problem}`
  })
  throw new CliError(problems.join('\n'))
}

/** The secrets that differ from the stored ones. They are compared by fingerprint; equal values are not sent. */
async function changedSecrets(
  { api, world, file, secrets }: Context,
  current: Tree,
  document: Tree,
  draft: Draft,
): Promise<ReadonlyMap<string, string>> {
  const changed = new Map<string, string>()
  const salt = world.bytes(16).toString('hex')
  const checked = checkDocument(document)
  const wanted = checked.ok ? checked.document.vendors : {}
  for (const [vendor, { secrets: references }] of Object.entries(file.declared.vendors ?? {})) {
    if (Object.keys(references).length === 0) continue
    const isThere = isTree(current.vendors) && Object.hasOwn(current.vendors, vendor)
    const path = at`/vendors/${vendor}/credentials` + query({ salt })
    const { items } = isThere ? await api.call<Page<VendorCredentialView>>('GET', path) : { items: [] }
    const named = wanted[vendor] ? credentialsOf(wanted[vendor]).map(({ name }) => name) : []
    for (const [name, reference] of Object.entries(references)) {
      const place = file.at(['vendors', vendor, 'secrets', name])
      if (!named.includes(name))
        throw new CliError(
          `${place}: the vendor "${vendor}" has no credential ${name}; it has ${named.join(', ') || 'none'}.`,
        )
      const known = items.find((one) => one.name === name)
      if (known?.source === 'env') {
        draft.notes.push(`${name} is in the gateway's environment, which wins: it is not sent.`)
        continue
      }
      const value = await secretAt(secrets, reference, place)
      if (!/^[\x21-\x7e]{1,4096}$/.test(value))
        throw new CliError(
          `${place}: what ${reference} holds is no credential: 1 to 4096 visible ASCII characters without spaces.`,
        )
      if (known?.fingerprint !== (await fingerprintOf(value, salt))) changed.set(name, value)
    }
  }
  return changed
}

// Limits.

function limitSentences(subject: string, was: LimitsView, is: LimitsView): string[] {
  // The table's own names.
  return (Object.keys(LIMITS) as LimitName[]).flatMap((name) => {
    // its own names
    if (was[name] === is[name]) return []
    const words = limitWords(LIMITS[name])
    if (is[name] === undefined) return [`${subject}: the limit of ${was[name]} ${words} is lifted.`]
    return [`${subject}: ${was[name] === undefined ? 'no limit' : was[name]} becomes ${is[name]} ${words}.`]
  })
}

/** Null removes a limit. */
function limitsPatch(was: LimitsView, is: LimitsView): object {
  return { ...Object.fromEntries(Object.keys(was).map((name) => [name, null])), ...is }
}

async function planSystemLimits({ api }: Context, wanted: LimitsView, draft: Draft): Promise<void> {
  const was = await api.call<LimitsView>('GET', '/limits')
  const sentences = limitSentences('The whole gateway', was, wanted)
  if (sentences.length === 0) return
  draft.steps.push({
    kind: 'change',
    sentences,
    run: async () => void (await api.call('PATCH', '/limits', limitsPatch(was, wanted))),
  })
}

// Accounts.

async function planAccounts(context: Context, wanted: readonly DeclaredAccount[], draft: Draft): Promise<void> {
  const { file } = context
  const there = (await allPages<AccountView>(context.api, '/accounts')).filter(({ status }) => status !== 'closed')
  const found = new Set<string>()
  for (const [index, account] of wanted.entries()) {
    const place = file.at(['accounts', index])
    const known = oneOf(`${place}: account`, account, there)
    if (known) found.add(known.id)
    await planAccount(context, account, known, { draft, path: ['accounts', index] })
  }
  const others = there.filter(({ id }) => !found.has(id))
  if (context.prune) for (const one of others) pruneAccount(context, one, draft)
  else if (others.length > 0)
    draft.notes.push(
      notInFile(
        'The gateway has the accounts',
        others.map(({ name }) => name),
      ),
    )
}

async function planAccount(
  context: Context,
  wanted: DeclaredAccount,
  known: AccountView | undefined,
  spot: Spot,
): Promise<void> {
  const { api } = context
  const { draft } = spot
  const place: Place = { name: wanted.name, id: known?.id }
  const limits = wanted.limits
  if (!known) {
    const credits = wanted.initialCredits === undefined ? '' : ` with ${wanted.initialCredits} credits`
    draft.steps.push({
      kind: 'create',
      sentences: [
        `Account ${wanted.name} is created${credits}.`,
        ...limitSentences(`Account ${wanted.name}`, {}, limits ?? {}),
      ],
      async run() {
        const body = { name: wanted.name, credits: wanted.initialCredits ?? '0', ...(limits ? { limits } : {}) }
        place.id = (await api.call<AccountView>('POST', '/accounts', body)).id
        return undefined
      },
    })
  } else {
    const renamed = known.name === wanted.name ? [] : [`Account ${known.name} is renamed ${wanted.name}.`]
    const limited = limits ? limitSentences(`Account ${wanted.name}`, known.limits, limits) : []
    if (renamed.length + limited.length > 0)
      draft.steps.push({
        kind: 'change',
        sentences: [...renamed, ...limited],
        async run() {
          const patch = limited.length > 0 && limits ? { limits: limitsPatch(known.limits, limits) } : {}
          await api.call('PATCH', at`/accounts/${known.id}`, {
            ...(renamed.length > 0 ? { name: wanted.name } : {}),
            ...patch,
          })
          return undefined
        },
      })
  }
  const { keys, members, teams, budgets, purses } = wanted
  if (purses) draft.steps.push(...(await planPurses(context, place, purses, [...spot.path, 'purses'])))
  if (!keys && !members && !teams && !budgets) return
  const account: Account = { context, place, spot, inside: await readInside(api, place, wanted) }
  const removeTeams = planTeams(account, teams)
  if (keys) planKeys(account, keys)
  if (budgets) await planBudgets(account, budgets)
  removeTeams()
  if (members) planMembers(account, members)
}

function pruneAccount({ api }: Context, { id, name, balance }: AccountView, draft: Draft): void {
  if (Number(balance) !== 0) {
    draft.notes.push(
      `Account ${name} (${id}) is not in the file and has ${balance} credits. Money is not pruned: pay it out or write it off with "tollgate accounts close".`,
    )
    return
  }
  draft.steps.push({
    kind: 'remove',
    sentences: [`Account ${name} (${id}) is closed, and all its keys end.`],
    run: async () =>
      void (await api.call('POST', at`/accounts/${id}/close`, {
        reason: 'not in the file of tollgate apply',
        balance: 'writeoff',
      })),
  })
}

// Keys.

const FIELDS = {
  models: 'models',
  endpoints: 'endpoints',
  ipRanges: 'addresses',
  expiresAt: 'expiry',
  responseCache: 'response cache',
  requiredLabels: 'required labels',
  routing: 'routing',
} as const
type Field = keyof typeof FIELDS

function planKeys({ context, place: account, inside, spot }: Account, wanted: readonly DeclaredKey[]): void {
  const { api, file, prune } = context
  const { draft } = spot
  // OAuth connections are created by people, and replaced keys expire on their own, so neither is in the file.
  const there = inside.keys.filter(({ revokedAt, client }) => revokedAt === null && client === null)
  const found = new Set<string>()
  for (const [index, key] of wanted.entries()) {
    const path = [...spot.path, 'keys', index]
    const known = oneOf(
      `${file.at(path)}: key`,
      key,
      there.filter(({ test }) => test === key.test),
    )
    if (known) found.add(known.id)
    const subject = `Key ${key.name}${key.test ? ' (test)' : ''} of ${account.name}`
    const about = { draft, subject, belongs: placesOf(context, key, inside, { draft, path }) }
    if (known) changeKey(context, key, known, about)
    else {
      const place: Place = { id: undefined, name: key.name }
      if (!key.test) inside.keyPlaces.push(place)
      createKey(context, key, { account, place }, about)
    }
  }
  const others = there.filter(({ id }) => !found.has(id))
  if (!prune && others.length > 0)
    draft.notes.push(
      notInFile(
        `Account ${account.name} has the keys`,
        others.map(({ name }) => name),
      ),
    )
  if (prune)
    for (const { id, name, last4 } of others)
      draft.steps.push({
        kind: 'remove',
        sentences: [`Key ${name} (…${last4}) of ${account.name} is revoked.`],
        run: async () => void (await api.call('DELETE', at`/keys/${id}`)),
      })
}

interface About {
  readonly draft: Draft
  readonly subject: string
  readonly belongs: readonly Belonging[]
}

/** The team or the member of a key, as the file says it. */
interface Belonging {
  readonly field: 'teamId' | 'memberId'
  readonly words: 'team' | 'member'
  readonly place: Place | null
}

function placesOf({ file }: Context, key: DeclaredKey, inside: Inside, { draft, path }: Spot): Belonging[] {
  return (
    [
      ['teamId', 'team', 'team or project'],
      ['memberId', 'member', 'member'],
    ] as const
  ).flatMap(([field, words, scope]) => {
    const name = key[words]
    if (name === undefined) return []
    const place = name === null ? null : inside.find(scope, name, file.at([...path, words]))
    if (place !== undefined) return [{ field, words, place }]
    draft.notes.push(`Key ${key.name} is ${name}'s when the invitation is accepted and the file applied again.`)
    return []
  })
}

const idsOf = (belongs: readonly Belonging[]) =>
  Object.fromEntries(belongs.map(({ field, place }) => [field, place?.id ?? null]))

function createKey(
  { api, secrets }: Context,
  key: DeclaredKey,
  { account, place }: { readonly account: Place; readonly place: Place },
  { draft, subject, belongs }: About,
): void {
  const { id: _, writeTo, team: _team, member: _member, ...body } = key
  draft.steps.push({
    kind: 'create',
    sentences: [
      `${subject} is created; its value ${writeTo === undefined ? 'is shown once' : `is written to ${writeTo}`}.`,
    ],
    async run() {
      const given = { ...body, ...idsOf(belongs) }
      const made = await api.call<NewKey>('POST', at`/accounts/${account.id}/keys`, given)
      place.id = made.id
      if (writeTo === undefined) return { what: subject, value: made.key }
      try {
        await secrets.write(writeTo, made.key)
      } catch (error) {
        // The value could not be stored, so the key is revoked. Otherwise the next run would take it for the wanted
        // key.
        await api.call('DELETE', at`/keys/${made.id}`)
        throw new CliError(`${error instanceof Error ? error.message : 'it failed.'} The new key was revoked again.`)
      }
      return undefined
    },
  })
}

function changeKey({ api }: Context, key: DeclaredKey, known: KeyView, { draft, subject, belongs }: About): void {
  // The table's own names.
  const fields = (Object.keys(FIELDS) as Field[]).filter(
    (name) => key[name] !== undefined && !isSame(key[name], known[name]),
  ) // its own names
  const renamed = key.name === known.name ? [] : [`Key ${known.name} is renamed ${key.name}.`]
  const limited = key.limits ? limitSentences(subject, known.limits, key.limits) : []
  const moved = belongs.filter(({ field, place }) => known[field] !== (place === null ? null : place.id))
  const sentences = [
    ...renamed,
    ...moved.map(({ words, place }) => `${subject}: its ${words} becomes ${place?.name ?? 'none'}.`),
    ...fields.map((name) => `${subject}: ${FIELDS[name]} ${inWords(known[name])} becomes ${inWords(key[name])}.`),
    ...limited,
  ]
  if (sentences.length === 0) return
  const patch = {
    ...(renamed.length > 0 ? { name: key.name } : {}),
    ...Object.fromEntries(fields.map((name) => [name, key[name]])),
    ...(limited.length > 0 && key.limits ? { limits: limitsPatch(known.limits, key.limits) } : {}),
  }
  draft.steps.push({
    kind: 'change',
    sentences,
    run: async () => void (await api.call('PATCH', at`/keys/${known.id}`, { ...patch, ...idsOf(moved) })),
  })
}

// Members. A person with a pending invitation counts as a member.

function planMembers(
  { context: { api, prune }, place: account, spot: { draft }, inside: { members: there, invited } }: Account,
  wanted: NonNullable<DeclaredAccount['members']>,
): void {
  const of = (what: string) => `${at`/accounts/${account.id}/`}${what}`
  for (const { email, role } of wanted) {
    const known = there.find((one) => one.email === email)
    if (known && known.role !== role)
      draft.steps.push({
        kind: 'change',
        sentences: [`${email} becomes ${role} of ${account.name} instead of ${known.role}.`],
        run: async () => void (await api.call('PATCH', of(`members/${encodeURIComponent(known.userId)}`), { role })),
      })
    if (known || invited.some((one) => one.email === email && one.role === role)) continue
    draft.steps.push({
      kind: 'create',
      sentences: [`${email} is invited to ${account.name} as ${role}.`],
      async run() {
        const { link } = await api.call<{ link: string | null }>('POST', of('invites'), { email, role })
        if (link === null) return undefined
        return { what: `Invitation of ${email} to ${account.name}`, value: link }
      },
    })
  }
  const isWanted = ({ email, role }: { email: string; role: unknown }, byRole: boolean) =>
    wanted.some((one) => one.email === email && (!byRole || one.role === role))
  const others = there.filter((one) => !isWanted(one, false))
  // A pending link with another role than in the file counts as not in the file.
  const strangers = invited.filter((one) => !isWanted(one, true))
  const names = [...others, ...strangers].map(({ email }) => email)
  if (!prune && names.length > 0) draft.notes.push(notInFile(`Account ${account.name} has the members`, names))
  if (!prune) return
  for (const { userId, email } of others)
    draft.steps.push({
      kind: 'remove',
      sentences: [`${email} is removed from ${account.name}.`],
      run: async () => void (await api.call('DELETE', of(`members/${encodeURIComponent(userId)}`))),
    })
  for (const { id, email } of strangers)
    draft.steps.push({
      kind: 'remove',
      sentences: [`The invitation of ${email} to ${account.name} is withdrawn.`],
      run: async () => void (await api.call('DELETE', of(`invites/${encodeURIComponent(id)}`))),
    })
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isTree(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, one]) => [name, sorted(one)]),
  )
}
