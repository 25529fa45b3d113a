// Puts one family's vendor and routes into the catalogue of a running gateway, and leaves everything else as it is: prices,
// limits and other vendors stay. Shows what would change; --apply makes the change.
//
//   npx node examples/connect.ts examples/catalogs/openai.json
//   npx node examples/connect.ts examples/catalogs/openai.json --apply
//
// TOLLGATE_URL (http://127.0.0.1:8080 unless given) and TOLLGATE_OPERATOR_TOKEN say where and as whom.
import { readFile } from 'node:fs/promises'

export interface Catalogue {
  vendors: Record<string, object>
  models: Record<string, { routes: object[] }>
  endpoints: Record<string, { routes: object[] }>
}

/** The current document with the vendors and routes of the example. */
export function overlay(current: Catalogue, example: Catalogue): Catalogue {
  const routed = <T extends { routes: object[] }>(now: Record<string, T>, then: Record<string, T>) => {
    const merged = { ...now }
    for (const [id, entry] of Object.entries(then)) merged[id] = now[id] ? { ...now[id], routes: entry.routes } : entry
    return merged
  }
  return {
    ...current,
    vendors: { ...current.vendors, ...example.vendors },
    models: routed(current.models, example.models),
    endpoints: routed(current.endpoints, example.endpoints),
  }
}

async function ask(path: string, body?: object): Promise<unknown> {
  const response = await fetch(`${process.env.TOLLGATE_URL ?? 'http://127.0.0.1:8080'}/admin/v1${path}`, {
    method: body ? 'PUT' : 'GET',
    headers: {
      authorization: `Bearer ${process.env.TOLLGATE_OPERATOR_TOKEN ?? ''}`,
      'content-type': 'application/json',
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const answer = (await response.json()) as { data?: unknown; error?: { message: string } }
  if (!response.ok) throw new Error(answer.error?.message ?? `HTTP ${response.status}`)
  return answer.data
}

if (import.meta.main) {
  const [file, apply] = process.argv.slice(2)
  if (!file) throw new Error('Name a file of examples/catalogs.')
  const example = JSON.parse(await readFile(file, 'utf8')) as Catalogue
  const { document } = (await ask('/catalog')) as { document: Catalogue }
  const body = { document: overlay(document, example), note: `connect ${file}` }
  const { problems, changes } = (await ask('/catalog?dryRun=1', body)) as { problems: string[]; changes: string[] }
  for (const line of changes) console.log(line)
  for (const line of problems) console.error(`problem: ${line}`)
  if (problems.length > 0) process.exit(1)
  if (apply === '--apply')
    console.log(`applied as version ${((await ask('/catalog', body)) as { version: number }).version}`)
  else console.log(`\n${changes.length} changes. Nothing was applied; add --apply to do so.`)
}
