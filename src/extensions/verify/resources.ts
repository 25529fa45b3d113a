import * as z from 'zod'
import { type Resource, resource } from '../../operator/resource.ts'
import type { Verifier } from './runs.ts'
import { verificationRun, verificationState } from './views.ts'

export function verificationResources({ verifier }: { readonly verifier: Verifier }): Resource[] {
  return [
    resource('GET /ledger/verify', 'ledger:read', {
      title: 'Show the last verification of the ledger',
      answer: verificationState,
      run: () => verifier.state(),
    }),
    resource('POST /ledger/verify', 'ledger:write', {
      title: 'Verify the ledger',
      body: z.strictObject({ full: z.boolean().optional() }),
      answer: verificationRun,
      run: ({ body }) => verifier.start({ whole: body.full ?? false }),
    }),
  ]
}
