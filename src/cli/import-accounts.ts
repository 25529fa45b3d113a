// The accounts and keys of another gateway, made here. Each account's id follows from what it is called there, and each key is known by
// its hash, so that an import which is run again, or was cut off in the middle, makes only what is missing.
import { hash } from 'node:crypto'
import { accountIdFrom } from '../admission/accounts.ts'
import type { KeyView } from '../admission/views.ts'
import { CREDITS_MAX, type Credits, formatCredits } from '../kernel/credits.ts'
import type { Page } from '../kernel/view.ts'
import type { AccountView, LimitsInput } from '../ledger/views.ts'
import { Refused } from './api.ts'
import { at, CliError, type Invocation } from './command.ts'
import type { Say } from './import-report.ts'

export interface PlannedKey {
  readonly at: string
  readonly name: string
  readonly sha256: string
  readonly last4: string
  readonly models: readonly string[] | null
  readonly expiresAt: string | null
  readonly limits: LimitsInput
  readonly ipRanges: readonly string[] | null
}

export interface PlannedAccount {
  readonly at: string
  /** What makes it this one, and stays so: an Idempotency-Key. */
  readonly reference: string
  readonly name: string
  readonly credits: Credits
  readonly note: string
  readonly limits: LimitsInput
  readonly keys: readonly PlannedKey[]
}

/** Of any text, in the characters that a key may have. */
export function referenceOf(...parts: readonly string[]): string {
  return `import-${hash('sha256', JSON.stringify(parts), 'hex').slice(0, 40)}`
}

/** Dollars of a double, in credits; undefined where they are none, or too many. */
export function creditsOf(dollars: unknown, perDollar: string): Credits | undefined {
  const value = typeof dollars === 'number' ? dollars * Number(perDollar) : Number.NaN
  if (!Number.isFinite(value) || Math.abs(value) > Number(CREDITS_MAX) / 1_000_000) return undefined
  return BigInt(Math.round(value * 1_000_000))
}

const KEY_CHARS_MIN = 20
const GUESSED = [...'0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_']

/** Says that a key is too short. `value` stands without its prefix; undefined where only its hash and its last characters are known. */
export function warnShort(at: string, key: Pick<PlannedKey, 'sha256' | 'last4'>, say: Say, value?: string): void {
  const isShort = value === undefined ? isGuessed(key) : value.length < KEY_CHARS_MIN
  if (isShort)
    say(
      `${at}.key`,
      'changed',
      `WARNING: ${value === undefined ? 'its value can be guessed from its last four characters' : `its value has only ${value.length} characters, and can be guessed`}. Give its holder a new key: tollgate keys rotate`,
    )
}

/** Whether at most two characters stand between the prefix and those that are known: 4,161 hashes, a few milliseconds. */
function isGuessed({ sha256, last4 }: Pick<PlannedKey, 'sha256' | 'last4'>): boolean {
  const starts = ['', ...GUESSED, ...GUESSED.flatMap((first) => GUESSED.map((second) => first + second))]
  return starts.some((start) => hash('sha256', `sk-${start}${last4}`, 'hex') === sha256)
}

/** What is there already of a plan. */
interface Found {
  readonly planned: PlannedAccount
  readonly id: string
  readonly account: AccountView | undefined
  readonly keys: readonly KeyView[]
}

export async function findAccounts(
  call: Invocation,
  plan: readonly PlannedAccount[],
  say: Say,
): Promise<readonly Found[]> {
  const found: Found[] = []
  for (const planned of plan) {
    const id = accountIdFrom(planned.reference)
    const account = await orNothing(call.api.call<AccountView>('GET', at`/accounts/${id}`))
    const keys = account ? await keysOf(call, id) : []
    if (account) say(planned.at, 'left', `Account ${id} is there already, and stays as it is.`)
    for (const key of planned.keys)
      if (keys.some((one) => isSame(one, key))) say(key.at, 'left', 'The key is there already, and stays as it is.')
    found.push({ planned, id, account, keys })
  }
  return found
}

const isSame = (one: KeyView, key: PlannedKey) => one.name === key.name && one.last4 === key.last4 && !one.replacedBy

interface Made {
  accounts: number
  keys: number
  readonly refused: string[]
}

/** Makes what is missing; answers how much that was, and what was refused. */
export async function makeAccounts(call: Invocation, found: readonly Found[]): Promise<Made> {
  const made: Made = { accounts: 0, keys: 0, refused: [] }
  for (const { planned, id, account, keys } of found) {
    const { name, credits, note, limits, reference } = planned
    const body = { name, credits: formatCredits(credits), note, limits }
    try {
      if (!account) await call.api.call('POST', '/accounts', body, { 'idempotency-key': reference })
    } catch (error) {
      made.refused.push(`${planned.at}: ${messageOf(error)}`)
      continue
    }
    if (!account) made.accounts += 1
    for (const { at: where, ...key } of planned.keys) {
      try {
        const { id: keyId } = await call.api.call<KeyView>('POST', at`/accounts/${id}/imported-keys`, key)
        if (!keys.some((one) => one.id === keyId)) made.keys += 1
      } catch (error) {
        made.refused.push(`${where}: ${messageOf(error)}`)
      }
    }
  }
  return made
}

async function keysOf(call: Invocation, account: string): Promise<readonly KeyView[]> {
  const keys: KeyView[] = []
  let next: string | null = ''
  while (next !== null) {
    const page: Page<KeyView> = await call.api.call(
      'GET',
      at`/accounts/${account}/keys` + (next === '' ? '?limit=200' : `?limit=200&cursor=${encodeURIComponent(next)}`),
    )
    keys.push(...page.items)
    next = page.next
  }
  return keys
}

function orNothing<T>(asked: Promise<T>): Promise<T | undefined> {
  return asked.catch((error: unknown) => {
    if (error instanceof Refused && error.status === 404) return undefined
    throw error
  })
}

/** Refusals are told, and the rest goes on; a gateway that is away ends it. */
function messageOf(error: unknown): string {
  if (error instanceof Refused && error.status < 500 && error.status !== 401) return error.message
  if (error instanceof CliError) throw new CliError(`${error.message} Run it again: what was made is not made twice.`)
  throw error
}
