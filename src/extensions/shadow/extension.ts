// Copies of some text calls go to another model or vendor, whose answers are discarded.
import { defineExtension } from '../../extension.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { createShadows, type ShadowDeps } from './shadow.ts'

type Core = Omit<ShadowDeps, 'meter'> & { readonly metrics: Pick<Metrics, 'shadow'> }

export const shadow = defineExtension<Core>({
  name: 'shadow',
  path: (all) => ({ shadows: createShadows({ ...all, meter: all.metrics.shadow }) }),
})
