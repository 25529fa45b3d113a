// Values as they are written in Python and in TypeScript, and what examples are made of. Built into the console as well, so that its
// examples and those of the documentation are the same.

type Body = Readonly<Record<string, unknown>>

/** What an example of a data endpoint needs to know of it. */
export interface DataSubject {
  readonly id: string
  readonly path: string
  readonly params: readonly {
    readonly name: string
    readonly kind: string
    readonly required?: boolean | undefined
    readonly example?: string | undefined
  }[]
}

/** How a data endpoint is called in the clients for TypeScript and Python. */
export interface ClientCall {
  /** Below the client: `analytics.websites.visitsTrend`. */
  readonly typescript: string
  readonly python: string
  /** The parameter that is given on its own, before the others. */
  readonly first?: string
  /** What Python calls each parameter. */
  readonly names: Readonly<Record<string, string>>
}

export interface Tables {
  /** The address of the gateway. */
  readonly origin: string
  /** Paid endpoints by their id where several sell the same kind, else by the kind. */
  readonly posts: Readonly<Record<string, { readonly id: string; readonly path: string; readonly example: Body }>>
  readonly calls: Readonly<Record<string, ClientCall>>
}

/** Names without quotation marks where the language needs none. */
export const typescript = (value: unknown): string =>
  JSON.stringify(value, null, 2).replace(/^( +)"([a-zA-Z_]\w*)":/gm, '$1$2:')

export function namedArguments(body: Record<string, unknown>): string[] {
  return Object.entries(body).map(([name, value]) => `    ${name}=${python(value).replaceAll('\n', '\n    ')},`)
}

/** JSON and Python agree on everything but three words. */
export function python(value: unknown): string {
  return JSON.stringify(value, null, 4).replace(/^(.*: )?(true|false|null)(,?)$/gm, (_, lead = '', word, comma) => {
    const words: Record<string, string> = { true: 'True', false: 'False', null: 'None' }
    return `${lead}${words[word]}${comma}`
  })
}
