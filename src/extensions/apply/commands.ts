// `tollgate apply`: changes the gateway to match a YAML file. It also writes such a file from the gateway's current
// state.
import { readFile, writeFile } from 'node:fs/promises'
import type { KeyView, TeamView } from '../../admission/views.ts'
import { type CatalogInput, credentialsOf } from '../../catalog/document.ts'
import type { CurrentView } from '../../catalog/views.ts'
import type { Api } from '../../cli/api.ts'
import { at, CliError, type Command, flag, type Invocation, type Told } from '../../cli/command.ts'
import { query } from '../../cli/table.ts'
import type { MemberView, PendingInvite } from '../../identity/views.ts'
import type { Page } from '../../kernel/view.ts'
import type { AccountView, BudgetValueView, BudgetView } from '../../ledger/views.ts'
import type { LimitsView } from '../../meter/limits.ts'
import { FORMAT, readDeclaration, VALUES_MAX } from './file.ts'
import { makePlan } from './plan.ts'
import { exportedPurses } from './purses.ts'
import { openSecretReferences } from './secret-reference.ts'
import { allPages, nameIn, type Plan, type Shown, type Step } from './steps.ts'

const SIGNS: Readonly<Record<Step['kind'], string>> = { create: '+', change: '~', remove: '-' }
/** The exit code of --dry-run if something differs, so that CI can distinguish it from a failure. */
const DIFFERS = 2

export const APPLY_COMMAND: Command = {
  name: 'apply',
  summary:
    'Brings accounts, keys, limits, members, teams, budgets, prices of purses, vendors and the catalog to the state of a YAML file.',
  args: ['[file]'],
  about:
    'Shows the differences, asks for confirmation, and changes only these. "-" reads standard input. Exits with 0 when nothing differs or everything was applied, with 2 when --dry-run found differences, and with 1 on failure; earlier changes stay, and running the command again continues from there.',
  options: {
    'dry-run': flag('Shows what would change; exits with 2 if something would.'),
    yes: { type: 'boolean', short: 'y', help: 'Does not ask. For CI.' },
    prune: flag('Also removes entries that are not in the file; each removal is listed first.'),
    export: flag('Writes the current state to the file, or to standard output, and changes nothing.'),
  },
  run: (call) => (call.values.export ? exportAll(call) : apply(call)),
}

async function apply(call: Invocation): Promise<Told> {
  const [file] = call.args
  if (file === undefined) throw new CliError('The command is: tollgate apply <file> [options]', 2)
  const text = file === '-' ? await call.input() : await readFile(file, 'utf8').catch(() => undefined)
  if (text === undefined) throw new CliError(`There is no file ${file}, or it cannot be read.`)
  const declaration = await readDeclaration(file, text)
  const secrets = openSecretReferences({
    world: call.world,
    environment: call.settings.environment ?? (() => undefined),
  })
  try {
    const { api, world } = call
    const plan = await makePlan({ api, world, secrets, file: declaration, prune: call.values.prune === true })
    return await carryOut(call, plan)
  } finally {
    await secrets.close()
  }
}

async function carryOut(call: Invocation, plan: Plan): Promise<Told> {
  const { steps, notes } = plan
  const changes = steps.flatMap(({ kind, sentences }) => sentences.map((sentence) => ({ kind, sentence })))
  const noted = notes.map((note) => `Note: ${note}`)
  const nothing: Shown[] = []
  const answer = { changes, notes, applied: false, created: nothing }
  if (changes.length === 0) return { answer, words: ['Nothing differs.', ...noted].join('\n') }
  const listed = [...changes.map(({ kind, sentence }) => `  ${SIGNS[kind]} ${sentence}`), ...noted].join('\n')
  if (call.values['dry-run']) return { answer, words: listed, exitCode: DIFFERS }
  // If the output is a pipe, only the answer is written.
  call.note(`${listed}\n`)
  if (!(await isAgreed(call, plan))) return { answer, words: 'Nothing was changed.', exitCode: 1 }
  const created = await runSteps(call, steps)
  const shown = created.map(({ what, value }) => `${what}, shown only now:\n  ${value}`)
  const count = changes.length === 1 ? 'One change was made.' : `${changes.length} changes were made.`
  return { answer: { ...answer, applied: true, created }, words: [count, ...shown].join('\n') }
}

async function isAgreed({ values, ask }: Invocation, { steps }: Plan): Promise<boolean> {
  if (values.yes) return true
  if (!ask) throw new CliError('Nobody is at a terminal to be asked. Add --yes to apply these changes.')
  const removals = steps.filter(({ kind }) => kind === 'remove').length
  const warning = removals > 0 ? ` ${removals} of them remove${removals === 1 ? 's' : ''} something.` : ''
  return /^y(es)?$/i.test((await ask(`Apply these changes?${warning} [y/N] `)).trim())
}

/** Runs the steps one after the other. If one fails, the earlier ones stay, and the next run continues after them. */
async function runSteps(call: Invocation, steps: readonly Step[]): Promise<Shown[]> {
  const created: Shown[] = []
  for (const [index, step] of steps.entries()) {
    try {
      const shown = await step.run()
      if (shown) created.push(shown)
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      // Shows keys and links before the error, because they are shown only once.
      for (const { what, value } of created) call.say(`${what}, shown only now:\n  ${value}\n`)
      throw new CliError(
        `${error.message}\nStopped at change ${index + 1} of ${steps.length}: ${step.sentences[0]}\nEarlier changes stay. Fix the cause and run the same command again; it continues from here.`,
      )
    }
  }
  return created
}

// The current state as such a file.

async function exportAll(call: Invocation): Promise<undefined> {
  const { stringify } = await import('yaml')
  const { document } = await call.api.call<CurrentView>('GET', '/catalog')
  const { vendors, ...catalog } = document
  const limits = await call.api.call<LimitsView>('GET', '/limits')
  const accounts: object[] = []
  for (const account of await allPages<AccountView>(call.api, '/accounts'))
    if (account.status !== 'closed') accounts.push(await accountOf(call.api, account))
  const text = [
    '# Written by "tollgate apply --export". Values of secrets and of keys are not in it, nor balances.',
    stringify({ tollgate: FORMAT, limits, accounts }, { lineWidth: 0, aliasDuplicateObjects: false }),
    ...secretHints(vendors),
    stringify({ vendors, catalog }, { lineWidth: 0, aliasDuplicateObjects: false }),
  ].join('\n')
  const [file] = call.args
  if (file === undefined) call.say(text)
  else {
    await writeFile(file, text)
    call.say(`Written to ${file}.\n`)
  }
  return undefined
}

async function accountOf(api: Api, { id, name, limits }: AccountView): Promise<object> {
  const keys = await allPages<KeyView>(api, at`/accounts/${id}/keys`)
  const members = await api.call<Page<MemberView>>('GET', at`/accounts/${id}/members`)
  const invites = await api.call<Page<PendingInvite>>('GET', at`/accounts/${id}/invites`)
  const people = [...members.items, ...invites.items.filter(({ role }) => role !== null)]
  const { items: teams } = await api.call<Page<TeamView>>('GET', at`/accounts/${id}/teams`)
  const { items: budgets } = await api.call<Page<BudgetView>>('GET', at`/accounts/${id}/budgets`)
  const named = nameIn({ teams, keys, members: members.items })
  const byEmail = new Map(people.map(({ email, role }) => [email, role]))
  return {
    id,
    name,
    limits,
    keys: keys
      .filter(({ revokedAt, client }) => revokedAt === null && client === null)
      .map(({ id: keyId, name: keyName, test, teamId, memberId, limits: own, ...rest }) => ({
        id: keyId,
        name: keyName,
        ...(test ? { test } : {}),
        ...(teamId === null ? {} : { team: named('team', teamId) }),
        // The member may have left the account; the key still has their id.
        ...withoutNull({ member: members.items.find(({ userId }) => userId === memberId)?.email ?? null }),
        ...restrictionsOf(rest),
        limits: own,
      })),
    // If a person has several links, the first is the newest.
    members: [...byEmail].map(([email]) => ({ email, role: people.find((one) => one.email === email)?.role })),
    teams: teamsOf(teams, null),
    budgets: await Promise.all(budgets.map((one) => budgetOf(api, id, one, named))),
    ...(await exportedPurses(api, id)),
  }
}

const restrictionsOf = (
  key: Pick<
    KeyView,
    'models' | 'endpoints' | 'ipRanges' | 'responseCache' | 'expiresAt' | 'requiredLabels' | 'routing'
  >,
) =>
  withoutNull({
    models: key.models,
    endpoints: key.endpoints,
    ipRanges: key.ipRanges,
    responseCache: key.responseCache,
    expiresAt: key.expiresAt,
    requiredLabels: key.requiredLabels,
    routing: key.routing,
  })

function teamsOf(teams: readonly TeamView[], parent: string | null): object[] {
  return teams
    .filter(({ parentId }) => parentId === parent)
    .map(({ id, name, members, scimGroup }) => ({
      id,
      name,
      ...(scimGroup === null ? { members: members.map(({ email }) => email) } : { scimGroup }),
      ...(parent === null ? { projects: teamsOf(teams, id) } : {}),
    }))
}

async function budgetOf(
  api: Api,
  account: string,
  { id, name, scope, value, unit, span, windowSeconds, max, hard, alertPercent }: BudgetView,
  named: ReturnType<typeof nameIn>,
): Promise<object> {
  const path = at`/accounts/${account}/budgets/${id}/values` + query({ overridden: 'true', limit: String(VALUES_MAX) })
  const own = value === null ? (await api.call<Page<BudgetValueView>>('GET', path)).items : []
  return {
    id,
    name,
    scope,
    ...withoutNull({ value: value === null ? null : named(scope, value) }),
    unit,
    span,
    ...withoutNull({ windowSeconds, alertPercent }),
    max,
    hard,
    ...(own.length > 0 ? { values: Object.fromEntries(own.map((one) => [named(scope, one.value), one.max])) } : {}),
  }
}

function withoutNull(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
}

function secretHints(vendors: CatalogInput['vendors']): string[] {
  const named = Object.entries(vendors).flatMap(([vendor, { credential, credentials }]) =>
    credentialsOf({ credential, credentials: credentials?.map(({ name }) => ({ name, weight: 1 })) }).map(
      ({ name }) => `#   ${vendor}: secrets: { ${name}: env:${name} }`,
    ),
  )
  return named.length === 0
    ? []
    : ['# Add to a vendor where its secrets are (env:, file:, vault:, aws: or gcp:) to have them stored too:', ...named]
}
