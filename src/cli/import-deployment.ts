// One deployment of a model at one vendor, as another gateway has it, put into a catalogue: beside those that the model has already.
import { type ChosenModel, suggestedUid, withConnection } from '../catalog/connect.ts'
import type { CatalogInput } from '../catalog/document.ts'
import type { KindName } from '../catalog/kind.ts'
import type { Preset } from '../catalog/preset.ts'

export interface ImportOptions {
  readonly presets: readonly Preset[]
  readonly markup: string
  readonly creditsPerDollar: string
}

export interface Deployment {
  /** What callers name. */
  readonly group: string
  /** Its name at the vendor. */
  readonly model: string
  readonly type: KindName
  readonly vendorName: string
  readonly vendor: CatalogInput['vendors'][string]
  readonly preset: Preset | undefined
  readonly weight: number | undefined
  readonly order?: number | undefined
  readonly cost: ChosenModel['cost']
  /** Absent: cost × markup. */
  readonly pricing?: ChosenModel['pricing']
}

type RouteInput = CatalogInput['models'][string]['routes'][number]

/** Of the model `uid`: to the same model of the same vendor, in the same format. */
export function isSameRoute(one: RouteInput, other: RouteInput, uid: string): boolean {
  return (
    one.vendor === other.vendor &&
    one.protocol === other.protocol &&
    (one.model ?? uid) === (other.model ?? uid) &&
    (one.serves ?? []).join() === (other.serves ?? []).join()
  )
}

/** Under which a model of this name is offered here. */
export function uidOf(name: string): string {
  return suggestedUid({ vendors: {}, models: {}, endpoints: {} }, name, undefined)
}

/** With the deployment as a route; those that the group has already keep their places beside it. */
export function withDeployment(
  document: CatalogInput,
  read: Deployment,
  uid: string,
  { markup, creditsPerDollar }: ImportOptions,
) {
  const before = document.models[uid]?.routes ?? []
  const { model, type, cost, pricing, preset, vendorName, vendor, weight, order } = read
  const made = withConnection(document, {
    ...{
      vendorName,
      vendor,
      preset,
      formats: preset?.formats ?? [{ protocol: 'openai-chat' as const }],
      markup,
      creditsPerDollar,
    },
    models: [{ model, uid, type, ...(cost ? { cost } : {}), ...(pricing ? { pricing } : {}) }],
  })
  const after = made.document.models[uid]
  if (!after || made.problems.length > 0) return made
  const own = after.routes
    .filter((route) => route.vendor === vendorName && (route.model ?? uid) === model)
    .map(({ order: _, ...route }) => ({
      ...route,
      ...(weight === undefined ? {} : { weight }),
      ...(order ? { order } : {}),
    }))
  // Those of the same vendor under another name stay; the same one again is in its place.
  const kept = before.filter(
    (route) =>
      (after.routes.includes(route) || route.vendor === vendorName) && !own.some((one) => isSameRoute(one, route, uid)),
  )
  const models = { ...made.document.models, [uid]: { ...after, routes: [...kept, ...own] } }
  return { ...made, document: { ...made.document, models } }
}
