// What an endpoint is called in the clients for TypeScript and Python: the one place from which they are generated, and from
// which the reference and the console take their examples.
import type { DataEndpointSpec } from './endpoint.ts'
import type { Field } from './field.ts'

interface ClientCall {
  /** Below the client: `analytics.websites.visitsTrend`. */
  readonly typescript: string
  readonly python: string
  /** The parameter that is given on its own, before the others. */
  readonly first?: string
  /** What Python calls each parameter. */
  readonly names: Readonly<Record<string, string>>
}

const words = (path: string) => path.split(/[^A-Za-z0-9]+/).filter(Boolean)

export const pascal = (path: string) =>
  words(path)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')

export const camel = (path: string) => pascal(path).replace(/^./, (letter) => letter.toLowerCase())

export const snake = (name: string) =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .replaceAll(/[^A-Za-z0-9]+/g, '_')
    .toLowerCase()

const RESERVED = ['from', 'global', 'class', 'import', 'in', 'is', 'not']

/** A name that Python has for itself gets an underscore. */
export const pythonName = (name: string) => (RESERVED.includes(snake(name)) ? `${snake(name)}_` : snake(name))

/** Written by hand in the clients. */
const SOCIAL: Readonly<Record<string, Omit<ClientCall, 'names'>>> = {
  'social/users': { typescript: 'social.users.byUsername', python: 'social.users.by_username', first: 'username' },
  'social/users/{id}': { typescript: 'social.users.byId', python: 'social.users.by_id', first: 'id' },
  'social/users/{id}/tweets': { typescript: 'social.page', python: 'social.page', first: 'id' },
}

export function clientCall({ id, vendorPath, params }: DataEndpointSpec): ClientCall {
  const [group = '', ...rest] = vendorPath.split('/')
  const names = Object.fromEntries(Object.keys(params).map((name) => [name, pythonName(name)]))
  const analytics = {
    typescript: `analytics.${group}.${camel(rest.join('/'))}`,
    python: `analytics.${group}.${snake(rest.join('/'))}`,
  }
  return { ...(SOCIAL[id] ?? analytics), names }
}

/** A call with what is required, in both languages. */
export function exampleCalls(spec: DataEndpointSpec): { typescript: string; python: string } {
  const { typescript, python, first, names } = clientCall(spec)
  const required = Object.entries(spec.params).filter(([, field]) => field.required)
  const others = required.filter(([name]) => name !== first)
  const given = ([, field]: [string, Field]) => JSON.stringify(field.example)
  const alone = required.filter(([name]) => name === first).map(given)
  const members = others.map((one) => `${one[0]}: ${given(one).replaceAll('"', "'")}`).join(', ')
  return {
    typescript: `await client.${typescript}(${[...alone.map((value) => value.replaceAll('"', "'")), ...(members ? [`{ ${members} }`] : [])].join(', ')})`,
    python: `client.${python}(${[...alone, ...others.map((one) => `${names[one[0]]}=${given(one)}`)].join(', ')})`,
  }
}
