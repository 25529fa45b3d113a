// Pickers of what the gateway has: accounts, keys, models, vendors.
import { type ComponentProps, useState } from 'react'
import { api } from '../api.ts'
import { useQuery } from '../query.ts'
import { useMay } from '../session.tsx'
import { Picker } from '../ui/picker.tsx'

type Props = Omit<ComponentProps<typeof Picker>, 'options' | 'onSearch'>

const LOOKED_AT = 5

export function AccountPick(props: Props) {
  const [text, setText] = useState('')
  const found = useQuery(`accounts/pick/${text}`, (signal) => api.accounts({ q: text, limit: 20 }, signal))
  // Of those that are chosen, the name is known once one of the lists has it.
  const [names] = useState(() => new Map<string, string>())
  for (const { id, name } of found.data?.items ?? []) names.set(id, name)
  const options = [...names].map(([value, label]) => ({ value, label, about: value }))
  return <Picker {...props} options={options} onSearch={setText} free={/^acc_\w+$/} />
}

/** Of some accounts; without any, of those that come first. */
export function KeyPick({ accounts, ...props }: Props & { accounts: readonly string[] }) {
  const keys = useQuery(`keys/pick/${accounts.join()}`, async (signal) => {
    const some = accounts.length
      ? accounts.map((id) => ({ id, name: '' }))
      : (await api.accounts({ limit: LOOKED_AT }, signal)).items
    const lists = await Promise.all(
      some.map(async ({ id, name }) =>
        (await api.keys(id, {}, signal)).items.map((key) => ({ ...key, account: name })),
      ),
    )
    return lists.flat()
  })
  const options = (keys.data ?? [])
    .filter(({ revokedAt }) => revokedAt === null)
    .map(({ id, name, prefix, last4, account }) => ({
      value: id,
      label: name,
      about: `${prefix}…${last4} ${account}`.trim(),
    }))
  return <Picker {...props} options={options} free={/^key_\w+$/} />
}

export function ModelPick(props: Props) {
  const { data } = useQuery('public-catalog', api.publicCatalog)
  const options = data?.models.map(({ uid, name }) => ({ value: uid, label: uid, about: name === uid ? '' : name }))
  return <Picker {...props} options={options ?? []} free={/./} />
}

/** Whoever may not see the vendors types their names. */
export function VendorPick(props: Props) {
  const may = useMay()('vendors:read')
  const { data } = useQuery(may ? 'vendors' : undefined, api.vendors)
  return <Picker {...props} options={data?.items.map(({ name }) => ({ value: name, label: name })) ?? []} free={/./} />
}

/** Those in which vendors are; people who may not see the catalog type them. */
export function RegionPick(props: Props) {
  const may = useMay()('catalog:read')
  const { data } = useQuery(may ? 'catalog' : undefined, api.catalog)
  const regions = Object.values(data?.document.vendors ?? {}).flatMap(({ region }) => region ?? [])
  const options = [...new Set(regions)].toSorted().map((value) => ({ value, label: value }))
  return <Picker {...props} options={options} free={/^[a-z0-9-]{2,40}$/i} />
}
