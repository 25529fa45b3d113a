import type { PublicModel } from '../../wire.ts'

/** Grouped by family, in the catalogue's order. */
export function ModelOptions({ models }: { models: readonly PublicModel[] }) {
  const families = new Map<string, PublicModel[]>()
  for (const model of models) {
    const family = model.family ?? model.uid.split('-')[0] ?? ''
    families.set(family, [...(families.get(family) ?? []), model])
  }
  if (families.size < 2) return models.map((model) => <Option key={model.uid} model={model} />)
  return [...families].map(([family, members]) => (
    <optgroup key={family} label={family.charAt(0).toUpperCase() + family.slice(1)}>
      {members.map((model) => (
        <Option key={model.uid} model={model} />
      ))}
    </optgroup>
  ))
}

function Option({ model }: { model: PublicModel }) {
  return <option value={model.uid}>{model.name}</option>
}
