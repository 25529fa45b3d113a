import { type FormEvent, useEffect, useRef, useState } from 'react'
import { api } from '../../api.ts'
import { useDraft } from '../../draft.ts'
import { estimateTokens, priceOf, tierFor } from '../../pricing.ts'
import { refresh, useQuery } from '../../query.ts'
import { useLocation } from '../../router.tsx'
import { Button } from '../../ui/button.tsx'
import { BarList } from '../../ui/chart.tsx'
import { Code } from '../../ui/code.tsx'
import { SelectField, TextArea, TextField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'
import { Empty, Fault, Loaded } from '../../ui/state.tsx'
import type { PublicModel } from '../../wire.ts'
import { SnippetTabs } from '../model.tsx'
import { CostHint, type Receipt, ReceiptLine, receiptOf } from './cost.tsx'
import { ModelOptions } from './model-options.tsx'

interface Wish {
  model: string
  text: string
  dimensions: string
}

interface Result {
  texts: readonly string[]
  vectors: readonly (readonly number[])[]
  receipt?: Receipt
}

const FIRST: Wish = { model: '', text: '', dimensions: '' }
/** More than anybody reads, and less than the endpoint takes. */
const TEXTS_MAX = 50

export function EmbeddingPlay({ account }: { account: string }) {
  const catalog = useQuery('public-catalog', api.publicCatalog)
  return (
    <Loaded query={catalog}>
      {({ models }) => {
        const offered = models.filter((model) => model.type === 'embedding')
        return offered.length ? (
          <EmbeddingBench account={account} models={offered} />
        ) : (
          <Empty icon="models" title="No embedding model is enabled" />
        )
      }}
    </Loaded>
  )
}

function EmbeddingBench({ account, models }: { account: string; models: readonly PublicModel[] }) {
  const { query } = useLocation()
  const [wish, setWish] = useDraft<Wish>(`embedding/${account}/wish`, FIRST)
  const [result, setResult] = useDraft<Result | undefined>(`embedding/${account}/result`, undefined)
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Error>()
  const aborter = useRef<AbortController>(undefined)
  const model = models.find((one) => one.uid === (wish.model || query.get('model'))) ?? models[0]
  const set = (name: keyof Wish) => (text: string) => setWish((old) => ({ ...old, [name]: text }))

  useEffect(() => () => aborter.current?.abort(), [])

  const lines = wish.text.split('\n').map((line) => line.trim())
  const texts = [...new Set(lines)].filter((line) => line !== '').slice(0, TEXTS_MAX)
  const body = { input: texts, ...(wish.dimensions ? { dimensions: Number(wish.dimensions) } : {}) }

  const run = async (event: FormEvent) => {
    event.preventDefault()
    const control = new AbortController()
    aborter.current = control
    setBusy(true)
    setError(undefined)
    try {
      const response = await api.play(account, 'POST', '/v1/embeddings', {
        body: { model: model?.uid, ...body },
        signal: control.signal,
      })
      // A 200 has the shape of the endpoint's schema.
      const { data } = (await response.json()) as { data: { embedding: number[] }[] }
      const requestId = response.headers.get('x-request-id')
      const receipt = requestId ? await receiptOf(requestId) : undefined
      setResult({ texts, vectors: data.map(({ embedding }) => embedding), ...(receipt ? { receipt } : {}) })
      refresh(`overview/${account}`, `usage/${account}`, `account/${account}`)
    } catch (problem) {
      // `play` throws nothing but errors.
      if (!control.signal.aborted) setError(problem as Error)
    }
    setBusy(false)
  }

  const tokens = texts.reduce((sum, text) => sum + estimateTokens(text), 0)
  const tier = model?.pricing ? tierFor(model.pricing, {}, tokens) : undefined
  return (
    <div className="bench">
      <div className="stack">
        {error ? <Fault error={error} /> : null}
        {result ? (
          <Card>
            <Nearness {...result} />
            {result.receipt ? <ReceiptLine account={account} receipt={result.receipt} /> : null}
          </Card>
        ) : (
          <Empty icon="models" title="No vectors yet">
            <p>Write one text a line. The others are compared with the first.</p>
          </Empty>
        )}
      </div>
      <form className="bench-side" onSubmit={run} aria-label="Embedding">
        <SelectField label="Model" value={model?.uid ?? ''} onText={set('model')}>
          <ModelOptions models={models} />
        </SelectField>
        <TextArea
          label="Texts"
          hint={`One a line, up to ${TEXTS_MAX}.`}
          value={wish.text}
          onText={set('text')}
          placeholder={'The toll gate opens at dawn\nToll gates open at dawn\nA recipe for onion soup'}
          rows={6}
          required
        />
        <TextField
          label="Dimensions"
          hint="Empty: all that the model has."
          type="number"
          min={1}
          value={wish.dimensions}
          onText={set('dimensions')}
        />
        <CostHint most={priceOf(tier, { input: tokens })} />
        <Button type="submit" look="primary" icon="models" busy={busy} disabled={texts.length === 0}>
          Embed
        </Button>
        <details className="fold">
          <summary>As code</summary>
          <SnippetTabs subject={{ kind: 'embedding', model: model?.uid ?? '', body }} />
        </details>
      </form>
    </div>
  )
}

function Nearness({ texts, vectors }: Result) {
  const [first = []] = vectors
  const rows = texts.map((name, index) => {
    const value = cosine(first, vectors[index] ?? [])
    return { name, value, shown: value.toFixed(3) }
  })
  const shown = first.slice(0, 8).map((value) => value.toFixed(6))
  return (
    <div className="stack">
      <h3>Nearness to the first text</h3>
      <BarList label="Nearness to the first text" rows={rows} />
      <Code label="Beginning of the first vector" wrap text={`[${shown.join(', ')}, …] (${first.length} numbers)`} />
    </div>
  )
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]) =>
    x.reduce((sum, value, index) => sum + value * (y[index] ?? 0), 0)
  return dot(a, b) / (Math.sqrt(dot(a, a) * dot(b, b)) || 1)
}
