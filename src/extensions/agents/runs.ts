// The runs of agents, for whoever may read an account's usage.
import * as z from 'zod'
import type { Database } from '../../database/database.ts'
import { Fault } from '../../kernel/fault.ts'
import { type Resource, resource, text } from '../../operator/resource.ts'
import { readRun, runView } from '../../reports/runs.ts'

export function runResources({ database }: { readonly database: Database }): Resource[] {
  return [
    resource('GET /accounts/{id}/run', 'usage:read', {
      title: 'Show an agent’s run',
      // Sessions have any characters, so it is not a part of the path.
      query: z.strictObject({ run: text(64), cursor: text(64).optional() }),
      answer: runView,
      async run({ params, query }) {
        const found = await readRun(database, { account: params.id, ...query })
        if (!found) throw new Fault('not_found', { message: 'This account has no calls with this session.' })
        return found
      },
    }),
  ]
}
