// What the tabs of the playground share: the models on offer, what was wished for, the call and its receipt, the form.
import type { ComponentType, FormEvent, ReactNode } from 'react'
import { api } from '../../api.ts'
import { useDraft } from '../../draft.ts'
import { refresh, useQuery } from '../../query.ts'
import { useLocation } from '../../router.tsx'
import { Button } from '../../ui/button.tsx'
import { SelectField } from '../../ui/field.tsx'
import type { IconName } from '../../ui/icon.tsx'
import { Empty, Loaded } from '../../ui/state.tsx'
import type { PublicModel } from '../../wire.ts'
import { SnippetTabs } from '../model.tsx'
import { typeName } from '../models.tsx'
import type { Subject } from '../snippet.ts'
import { CostHint, type Receipt, receiptOf } from './cost.tsx'
import { ModelOptions } from './model-options.tsx'

export interface BenchProps {
  account: string
  models: readonly PublicModel[]
}

/** A tab for the models that are `offered`. */
export function modelTab(
  kind: string,
  icon: IconName,
  offered: (model: PublicModel) => boolean,
  Bench: ComponentType<BenchProps>,
) {
  return function ModelTab({ account }: { account: string }) {
    const catalog = useQuery('public-catalog', api.publicCatalog)
    return (
      <Loaded query={catalog}>
        {(data) => {
          const models = data.models.filter(offered)
          if (models.length) return <Bench account={account} models={models} />
          return <Empty icon={icon} title={`No ${kind} model is enabled`} />
        }}
      </Loaded>
    )
  }
}

/** The fields of a form, kept as a draft, and the model that they name. */
export function useWish<Wish extends { model: string }>(name: string, first: Wish, models: readonly PublicModel[]) {
  const { query } = useLocation()
  const [wish, setWish] = useDraft<Wish>(`${name}/wish`, first)
  return {
    wish,
    models,
    model: models.find((one) => one.uid === (wish.model || query.get('model'))) ?? models[0],
    set:
      <Name extends keyof Wish>(field: Name) =>
      (value: Wish[Name]) =>
        setWish((old) => ({ ...old, [field]: value })),
  }
}

/** Calls the public API for the account and waits for what it cost. A 200 has the shape of the endpoint's schema. */
export async function play<Answer>(
  account: string,
  method: string,
  path: string,
  options: { body?: unknown; signal?: AbortSignal } = {},
): Promise<{ answer: Answer; receipt?: Receipt }> {
  const response = await api.play(account, method, path, options)
  const answer = (await response.json()) as Answer
  const requestId = response.headers.get('x-request-id')
  refresh(`overview/${account}`, `usage/${account}`, `account/${account}`, `jobs/${account}`)
  return requestId ? { answer, receipt: await receiptOf(requestId) } : { answer }
}

interface BenchFormProps {
  kind: 'embedding' | 'image' | 'video'
  action: string
  icon: IconName
  bench: Pick<BenchProps, 'models'> & {
    model: PublicModel | undefined
    set: (field: 'model') => (uid: string) => void
  }
  call: { busy: boolean; go: () => void }
  ready: boolean
  most: bigint | undefined
  body: Record<string, unknown>
  children: ReactNode
}

export function BenchForm({ kind, action, icon, bench, call, children, ...rest }: BenchFormProps) {
  const { models, model, set } = bench
  const onSubmit = (event: FormEvent) => {
    event.preventDefault()
    call.go()
  }
  return (
    <form className="bench-side" onSubmit={onSubmit} aria-label={typeName(kind)}>
      <SelectField label="Model" value={model?.uid ?? ''} onText={set('model')}>
        <ModelOptions models={models} />
      </SelectField>
      {children}
      <CostHint most={rest.most} />
      <Button type="submit" look="primary" icon={icon} busy={call.busy} disabled={!rest.ready}>
        {action}
      </Button>
      <AsCode subject={{ kind, model: model?.uid ?? '', body: rest.body }} />
    </form>
  )
}

export function AsCode({ subject }: { subject: Subject }) {
  return (
    <details className="fold">
      <summary>As code</summary>
      <SnippetTabs subject={subject} />
    </details>
  )
}
