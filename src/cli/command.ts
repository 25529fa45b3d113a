// What a command is: its words, its help and what it does, in one entry.
import type { ParseArgsOptionDescriptor } from 'node:util'
import type { World } from '../kernel/world.ts'
import type { Api } from './api.ts'
import type { Reference } from './names.ts'

export interface Settings {
  /** Where the gateway is asked, and how that is known. */
  readonly url: string
  readonly urlSource: string
  readonly token: string | undefined
  /** Of a caller, for `call`. */
  readonly apiKey: string | undefined
  readonly tokenSource: string
  readonly dataDirectory: string
  readonly databaseUrl: string | undefined
  readonly publicUrl: string | undefined
  readonly trustProxy: string
  readonly host: string
  readonly codexHome: string
  /** What a running gateway wrote about itself. */
  readonly server: { readonly url: string; readonly pid: number } | undefined
  readonly credential: (name: string) => string | undefined
  /** Any variable, for secrets that a file of `apply` refers to by name. Absent: there are none. */
  readonly environment?: (name: string) => string | undefined
  readonly version: string
}

type Values = Readonly<Record<string, string | boolean | undefined>>

export interface Invocation {
  readonly args: readonly string[]
  readonly values: Values
  readonly settings: Settings
  readonly api: Api
  /** Output that is no answer, as it is. */
  say(text: string): void
  /** Progress for the person at the terminal. It goes to stderr, not into the output. */
  note(text: string): void
  readonly world: World
  /** The whole of standard input. */
  input(): Promise<string>
  /** Asks the person at the terminal a question, and answers a line. Absent: nobody is there. */
  readonly ask?: ((question: string) => Promise<string>) | undefined
  /** Verbs that are no commands of this table. */
  readonly otherVerbs: readonly string[]
}

export interface Option extends ParseArgsOptionDescriptor {
  readonly help: string
  /** What stands for the value in the help. */
  readonly value?: string
  /** The words that it takes, for completion. */
  readonly allowed?: readonly string[]
  /** It takes the name or the id of such a thing; the command gets the id. */
  readonly refersTo?: Reference
}

/** An option with a value: what stands for the value in the help, and the help. */
export const takes = (value: string, help: string, more: Pick<Option, 'allowed' | 'refersTo'> = {}): Option => ({
  ...{ type: 'string', value, help },
  ...more,
})

export const flag = (help: string): Option => ({ type: 'boolean', help })

export interface Command {
  /** `accounts create` */
  readonly name: string
  readonly summary: string
  /** Positional arguments in order; one in brackets may be left out. One that is called as a `Reference` takes a name or an id. */
  readonly args?: readonly string[]
  readonly options?: Readonly<Record<string, Option>>
  /** Where the options depend on the arguments. */
  readonly optionsFor?: (args: readonly string[]) => Readonly<Record<string, Option>>
  readonly aboutFor?: (args: readonly string[]) => string | undefined
  /** More than the summary says, as sentences. */
  readonly about?: string
  /** Nothing when everything has been said. */
  readonly run: (call: Invocation) => Promise<Told | undefined>
}

/** The outcome: the answer for programs, the same in words for people. */
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

/** A path of the operator API; what is put into it is encoded. */
export function at(parts: TemplateStringsArray, ...names: readonly (string | undefined)[]): string {
  return String.raw({ raw: parts }, ...names.map((name) => encodeURIComponent(name ?? '')))
}

/** Something that the person at the terminal can do something about. */
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
