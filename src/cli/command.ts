// The definition of a command: name, help and action in one entry.
import type { ParseArgsOptionDescriptor } from 'node:util'
import type { World } from '../kernel/world.ts'
import type { Api } from './api.ts'
import type { Reference } from './names.ts'

export interface Settings {
  /** The address of the gateway, and where it was found. */
  readonly url: string
  readonly urlSource: string
  readonly token: string | undefined
  /** The API key for `call`. */
  readonly apiKey: string | undefined
  readonly tokenSource: string
  readonly dataDirectory: string
  readonly databaseUrl: string | undefined
  /** TOLLGATE_LEDGERS; absent: none. */
  readonly ledgers?: ReadonlyMap<string, { readonly url: string; readonly region: string | undefined }>
  /** TOLLGATE_SECRET, with which addresses of ledgers are sealed. */
  readonly secret?: string | undefined
  readonly publicUrl: string | undefined
  readonly trustProxy: string
  readonly host: string
  readonly codexHome: string
  /** Where sign-ins are kept. Absent: there is no home. */
  readonly loginFile?: string | undefined
  /** How this program is started, for agents that run it. Absent: by npx. */
  readonly program?: readonly string[] | undefined
  /** The state file of a running gateway. */
  readonly server: { readonly url: string; readonly pid: number } | undefined
  readonly credential: (name: string) => string | undefined
  /** Reads environment variables, for secrets in a file of `apply`. Absent: there are none. */
  readonly environment?: (name: string) => string | undefined
  readonly version: string
}

type Values = Readonly<Record<string, string | boolean | undefined>>

export interface Invocation {
  readonly args: readonly string[]
  readonly values: Values
  readonly settings: Settings
  readonly api: Api
  /** Writes raw output that is not an answer. */
  say(text: string): void
  /** Progress for the person at the terminal. It goes to stderr, not into the output. */
  note(text: string): void
  readonly world: World
  /** The whole of standard input. */
  input(): Promise<string>
  /** Asks the person at the terminal, and returns the line. Absent: there is no terminal. */
  readonly ask?: ((question: string) => Promise<string>) | undefined
  /** All commands, and verbs that are not among them. */
  readonly commands: readonly Command[]
  readonly otherVerbs: readonly string[]
}

export interface Option extends ParseArgsOptionDescriptor {
  readonly help: string
  /** The placeholder of the value in the help. */
  readonly value?: string
  /** The allowed words, for completion. */
  readonly allowed?: readonly string[]
  /** Accepts a name or an id of this kind; the command gets the id. */
  readonly refersTo?: Reference
}

/** An option with a value: the placeholder of the value, and the help. */
export const takes = (value: string, help: string, more: Pick<Option, 'allowed' | 'refersTo'> = {}): Option => ({
  type: 'string',
  value,
  help,
  ...more,
})

export const flag = (help: string): Option => ({ type: 'boolean', help })

export interface Command {
  /** `accounts create` */
  readonly name: string
  readonly summary: string
  /**
   * Positional arguments in order; one in brackets is optional. An argument with the name of a `Reference` accepts a
   * name or an id.
   */
  readonly args?: readonly string[]
  readonly options?: Readonly<Record<string, Option>>
  /** For options that depend on the arguments. */
  readonly optionsFor?: (args: readonly string[]) => Readonly<Record<string, Option>>
  /** What its first word may be, where completion is to know it. */
  readonly completes?: readonly string[]
  readonly aboutFor?: (args: readonly string[]) => string | undefined
  /** Details after the summary, as sentences. */
  readonly about?: string
  /** Returns nothing if all output was already written. */
  readonly run: (call: Invocation) => Promise<Told | undefined>
}

/** The result: the answer for programs, and the same as text for people. */
export interface Told {
  readonly answer: unknown
  readonly words: string
  /** Exits with 1. */
  readonly failed?: boolean
  /** Exits with this instead of 0. */
  readonly exitCode?: number
}

export async function told<T>(asked: Promise<T> | T, words: (answer: T) => string): Promise<Told> {
  const answer = await asked
  return { answer, words: words(answer) }
}

/** A path of the operator API; values are encoded. */
export function at(parts: TemplateStringsArray, ...names: readonly (string | undefined)[]): string {
  return String.raw({ raw: parts }, ...names.map((name) => encodeURIComponent(name ?? '')))
}

/** An error that the person at the terminal can correct. */
export class CliError extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode = 1) {
    super(message)
    this.exitCode = exitCode
  }
}

export function text(call: Invocation, name: string): string | undefined {
  const value = call.values[name]
  return typeof value === 'string' ? value : undefined
}
