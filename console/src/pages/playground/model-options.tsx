import { GroupedOptions } from '../../ui/field.tsx'
import type { PublicModel } from '../../wire.ts'

/** Grouped by family. */
export function ModelOptions({ models }: { models: readonly PublicModel[] }) {
  const group = ({ family, uid }: PublicModel) => family ?? uid.split('-')[0] ?? ''
  return (
    <GroupedOptions choices={models.map((model) => ({ value: model.uid, label: model.name, group: group(model) }))} />
  )
}
