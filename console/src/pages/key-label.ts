// Names of keys, told apart where several have the same: a rotated key and its successor always do.

export function keyLabels(keys: readonly { id: string; name: string; last4: string }[]): Map<string, string> {
  const byName = Map.groupBy(keys, ({ name }) => name)
  return new Map(
    keys.map(({ id, name, last4 }) => [id, (byName.get(name)?.length ?? 0) > 1 ? `${name} (…${last4})` : name]),
  )
}
