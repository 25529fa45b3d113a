// The catalogue's versions as operators see them.
import * as z from 'zod'
import { count, time } from '../kernel/view.ts'
import { document } from './document.ts'

export const versionView = z.object({ version: count, appliedAt: time, actor: z.string(), note: z.string() })
export type VersionView = z.infer<typeof versionView>

export const currentView = versionView.extend({ document })
/** The document as it was given: what an operator edits. */
export type CurrentView = z.input<typeof currentView>

export const checkView = z.object({ problems: z.array(z.string()), changes: z.array(z.string()) })
export type CheckView = z.infer<typeof checkView>

export const appliedView = z.object({
  /** The one before when nothing differs: what is in force already makes no new version. */
  version: count,
  changes: z.array(z.string()),
})
export type Applied = z.infer<typeof appliedView>
