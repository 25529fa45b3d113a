// How the command line reaches a resource. `npm run generate` derives src/cli/commands.json from the tables in
// commands/ and the schemas of the resources.

/**
 * Options are the fields of the query and the body, with their descriptions. `meta` of a field may say more: `option`
 * is the name on the command line, `value` the placeholder of its value, `none` the word that means null, `off` the
 * flag that means false, `refersTo` whose names are accepted, and `read` that the value is a secret or the content of a
 * file.
 */
interface CommandText {
  /**
   * `budgets values <account> <budget>: …`: the parameters of the path in their order, then fields. Without a summary
   * behind it, the title of the resource is one. `vendors credentials <vendor> --set <NAME>: …` is what another command
   * of this name does with this option, a parameter or, without a value, a fixed choice.
   */
  readonly usage: string
  readonly about?: string
  /** With commas: `name`, `models|all` or `KEY={prefix}…{last4}`, where the member's own name is not the heading. */
  readonly columns?: string
  /** The columns of rows inside the answer, by the members that lead to them. */
  readonly tables?: Readonly<Record<string, string>>
  /** It exits with 1 if one of these is there, as `{ok: false}` and `problems` do: `failure`, `rows.state#failed`. */
  readonly fails?: readonly string[]
  /** Further options, such as `url <address>: …`, and where their texts go. */
  readonly also?: Readonly<Record<string, string>>
  /** What is said if a list is empty. */
  readonly empty?: string
  /**
   * The answer in words, with members in braces, and in brackets what is said of each row: `[steps:{method}]`. Without
   * it and without columns, every member has a line, and rows have a table. What was sent is `{given}`.
   */
  readonly words?: string
  /** The member of the answer that is never shown again. */
  readonly once?: string
  /** Fields with a fixed value; `-{amount}` has the value of an argument in it. */
  readonly set?: Readonly<Record<string, unknown>>
  /** Fields that are not options, also members of them: `price.cacheSeconds`. */
  readonly without?: readonly string[]
  /** What is not named stays: the stored fields are read and sent again. */
  readonly merge?: true
  /** The fields are of an element of this list, which is put in or taken out; what else is stored is sent again. */
  readonly list?: string
  /** What is said where no such element can be taken out; without it, one is put in. */
  readonly missing?: string
  /** With --account the same resource of an account. */
  readonly orAccount?: string
  /** The answer is saved as a file of this type; `rows` are written to standard output as CSV. */
  readonly file?: 'application/pdf' | 'application/zip' | 'rows'
}

interface Reached {
  readonly method: string
  readonly path: string
}

/** The resources with the commands that reach them. A command for a resource that is not there is a mistake. */
export function withCommands<R extends Reached>(resources: readonly R[], commands: Commands): R[] {
  const left = new Set(Object.keys(commands))
  const reached = resources.map((entry) => {
    const name = `${entry.method} ${entry.path}`
    const command = commands[name]
    left.delete(name)
    return command ? { ...entry, command } : entry
  })
  if (left.size > 0) throw new Error(`There are commands for resources that do not exist: ${[...left].join(', ')}.`)
  return reached
}

/** By resource, such as `GET /accounts`. A text alone is the usage. */
export type Commands = Readonly<Record<string, string | CommandText | readonly (string | CommandText)[]>>
