// What the tabs of the playground share: the models on offer, what was wished for, the call and its receipt, the form.
import { type ComponentType, type FormEvent, type ReactNode, useEffect } from 'react'
import { api } from '../../api.ts'
import { useDraft } from '../../draft.ts'
import { refresh, useQuery } from '../../query.ts'
import { useLocation } from '../../router.tsx'
import { Button } from '../../ui/button.tsx'
import type { IconName } from '../../ui/icon.tsx'
import { Card } from '../../ui/page.tsx'
import { Empty, Fault, Loaded } from '../../ui/state.tsx'
import type { ModelType, PublicModel } from '../../wire.ts'
import { SnippetTabs } from '../model.tsx'
import { typeName } from '../models.tsx'
import type { Subject } from '../snippet.ts'
import { QuoteHint, type Receipt, ReceiptLine, receiptOf } from './cost.tsx'
import { ModelPicker } from './model-picker.tsx'

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
  // A link from the documentation or a model's page fills in what it names, also over what was there before.
  const given = query.toString()
  useEffect(() => {
    const named = [...new URLSearchParams(given)].filter(([field]) => Object.hasOwn(first, field))
    if (named.length) setWish((old) => ({ ...old, ...Object.fromEntries(named) }))
  }, [given, first, setWish])
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
  const read = async (response: Response) => (await response.json()) as Answer
  const played = await playAny(read, () => api.play(account, method, path, options))
  refresh(`overview/${account}`, `usage/${account}`, `account/${account}`, `jobs/${account}`)
  return played
}

/** The same for answers that are no JSON. */
export async function playAny<Answer>(
  read: (response: Response) => Promise<Answer>,
  call: () => Promise<Response>,
): Promise<{ answer: Answer; receipt?: Receipt }> {
  const response = await call()
  const answer = await read(response)
  const requestId = response.headers.get('x-request-id')
  return requestId ? { answer, receipt: await receiptOf(requestId) } : { answer }
}

interface BenchAnswerProps<Result> {
  account: string
  error: Error | undefined
  result: Result | undefined
  empty: { icon: IconName; title: string; words: string }
  children: (result: Result) => ReactNode
}

/** Beside the form: what went wrong, what came back and its cost, or what to do first. */
export function BenchAnswer<Result extends { receipt?: Receipt }>(props: BenchAnswerProps<Result>) {
  const { account, error, result, empty, children } = props
  return (
    <div className="stack">
      {error ? <Fault error={error} /> : null}
      {result ? (
        <Card>
          {children(result)}
          {result.receipt ? <ReceiptLine account={account} receipt={result.receipt} /> : null}
        </Card>
      ) : (
        <Empty icon={empty.icon} title={empty.title}>
          <p>{empty.words}</p>
        </Empty>
      )}
    </div>
  )
}

interface BenchFormProps {
  kind: Exclude<ModelType, 'text' | 'data' | 'realtime'>
  action: string
  icon: IconName
  bench: Pick<BenchProps, 'models'> & { model: PublicModel | undefined; set: (field: 'model') => (uid: string) => void }
  call: { busy: boolean; go: () => void }
  ready: boolean
  account: string
  body: Record<string, unknown>
  /** What a quote is asked for, where that is not the body. */
  quoted?: Record<string, unknown> | undefined
  children: ReactNode
}

export function BenchForm({ kind, action, icon, bench, call, children, ...rest }: BenchFormProps) {
  const { models, model, set } = bench
  const quoted = 'quoted' in rest ? rest.quoted : rest.body
  const onSubmit = (event: FormEvent) => {
    event.preventDefault()
    call.go()
  }
  return (
    <form className="bench-side" onSubmit={onSubmit} aria-label={typeName(kind)}>
      <ModelPicker models={models} chosen={model} onPick={set('model')} />
      {children}
      <QuoteHint account={rest.account} body={rest.ready && quoted ? { model: model?.uid, ...quoted } : undefined} />
      <Button type="submit" look="primary" icon={icon} busy={call.busy} disabled={!rest.ready}>
        {action}
      </Button>
      <AsCode subject={{ kind, model: model?.uid ?? '', body: shortened(rest.body) }} />
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

/** A data URI of megabytes says nothing in an example. */
export function shortened(body: Record<string, unknown>): Record<string, unknown> {
  const cut = (_name: string, value: unknown) =>
    typeof value === 'string' && value.startsWith('data:') ? `${value.slice(0, 40)}…` : value
  // The same object, but for its texts.
  return JSON.parse(JSON.stringify(body, cut)) as Record<string, unknown>
}
