// Values as they are written in Python and in TypeScript.
export const origin = () => window.location.origin

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
