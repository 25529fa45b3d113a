// What the parts of `tollgate apply` share: a plan is steps with their sentences, and things are known by their id or their name.
import type { Page } from '../kernel/view.ts'
import type { World } from '../kernel/world.ts'
import type { Api } from './api.ts'
import type { DeclarationFile } from './apply-file.ts'
import { CliError } from './command.ts'
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

/** The order of a list says nothing. */
export function isSame(a: unknown, b: unknown): boolean {
  const plain = (value: unknown) => JSON.stringify(Array.isArray(value) ? [...value].sort() : (value ?? null))
  return plain(a) === plain(b)
}

export function inWords(value: unknown): string {
  if (value === null || value === undefined) return 'none'
  return Array.isArray(value) ? value.join(', ') : String(value)
}
