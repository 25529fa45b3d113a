import * as z from 'zod'
import { type Resource, resource } from '../../operator/resource.ts'
import type { ArchiveWork } from './check.ts'
import { archiveState } from './views.ts'

export function archiveResources({ archive }: { readonly archive: ArchiveWork }): Resource[] {
  return [
    resource('GET /ledger/archive', 'ledger:read', {
      title: 'List the archived months of the ledger',
      answer: archiveState,
      run: () => archive.state(),
    }),
    resource('POST /ledger/archive', 'ledger:write', {
      title: 'Archive the months of the ledger that are due, or check one',
      body: z.strictObject({
        check: z
          .string()
          .regex(/^\d{4}-(0[1-9]|1[0-2])$/)
          .optional()
          .describe('A month such as 2026-01, whose files are read again and compared'),
      }),
      answer: archiveState,
      async run({ body }) {
        if (body.check === undefined) await archive.start()
        else await archive.check(body.check)
        return archive.state()
      },
    }),
  ]
}
