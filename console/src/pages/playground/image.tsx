import { type FormEvent, useEffect, useRef, useState } from 'react'
import { api } from '../../api.ts'
import { useDraft } from '../../draft.ts'
import { formatDuration } from '../../format.ts'
import { priceOf, tierFor } from '../../pricing.ts'
import { refresh, useQuery } from '../../query.ts'
import { useLocation } from '../../router.tsx'
import { Button } from '../../ui/button.tsx'
import { SelectField, TextArea } from '../../ui/field.tsx'
import { Note } from '../../ui/page.tsx'
import { Empty, Fault, Loaded } from '../../ui/state.tsx'
import type { PublicModel } from '../../wire.ts'
import { assetSource } from '../asset.ts'
import { SnippetTabs } from '../model.tsx'
import { CostHint, type Receipt, ReceiptLine, receiptOf } from './cost.tsx'
import { ModelOptions } from './model-options.tsx'
import { type Reference, References } from './references.tsx'

const SIZES = {
  'By the model': ['auto'],
  'Ratio, with the resolution below': ['1:1', '4:3', '16:9', '9:16'],
  Pixels: ['1024x1024', '1536x1024', '1024x1536', '2048x2048', '2048x1152', '3840x2160', '2160x3840'],
}

interface Wish {
  model: string
  prompt: string
  size: string
  quality: string
  resolution: string
  format: string
}

interface Result {
  id: string
  prompt: string
  url: string
  receipt?: Receipt
}

const FIRST: Wish = { model: '', prompt: '', size: 'auto', quality: 'auto', resolution: '1k', format: 'png' }

export function ImagePlay({ account }: { account: string }) {
  const catalog = useQuery('public-catalog', api.publicCatalog)
  return (
    <Loaded query={catalog}>
      {({ models }) => {
        const offered = models.filter((model) => model.type === 'image')
        return offered.length ? (
          <ImageBench account={account} models={offered} />
        ) : (
          <Empty icon="image" title="No image model is enabled" />
        )
      }}
    </Loaded>
  )
}

function ImageBench({ account, models }: { account: string; models: readonly PublicModel[] }) {
  const { query } = useLocation()
  const [wish, setWish] = useDraft<Wish>(`image/${account}/wish`, FIRST)
  const [references, setReferences] = useDraft<Reference[]>(`image/${account}/references`, [])
  const [results, setResults] = useDraft<Result[]>(`image/${account}/results`, [])
  const [since, setSince] = useState<number>()
  const [error, setError] = useState<Error>()
  const aborter = useRef<AbortController>(undefined)
  const model = models.find((one) => one.uid === (wish.model || query.get('model'))) ?? models[0]
  const set = (name: keyof Wish) => (text: string) => setWish((old) => ({ ...old, [name]: text }))

  useEffect(() => () => aborter.current?.abort(), [])

  const body = {
    prompt: wish.prompt.trim(),
    size: wish.size,
    quality: wish.quality,
    resolution: wish.resolution,
    output_format: wish.format,
    ...(references.length ? { image_urls: references.map((reference) => reference.source) } : {}),
  }

  const run = async (event: FormEvent) => {
    event.preventDefault()
    const control = new AbortController()
    aborter.current = control
    setSince(Date.now())
    setError(undefined)
    try {
      const response = await api.play(account, 'POST', '/alpha/v1/images/generations', {
        body: { model: model?.uid, ...body },
        signal: control.signal,
      })
      const answer = (await response.json()) as { data?: { url?: string }[] }
      const requestId = response.headers.get('x-request-id')
      const receipt = requestId ? await receiptOf(requestId) : undefined
      const made = (answer.data ?? []).flatMap(({ url }) =>
        url ? [{ id: crypto.randomUUID(), prompt: body.prompt, url, ...(receipt ? { receipt } : {}) }] : [],
      )
      setResults((old) => [...made, ...old].slice(0, 24))
      refresh(`overview/${account}`, `usage/${account}`, `account/${account}`)
    } catch (problem) {
      if (!control.signal.aborted) setError(problem as Error)
    }
    setSince(undefined)
  }

  const attributes = { resolution: resolutionOf(wish), quality: wish.quality }
  const tier = model?.pricing ? tierFor(model.pricing, attributes, 0) : undefined
  return (
    <div className="bench">
      <div className="stack">
        {error ? <Fault error={error} /> : null}
        {since === undefined ? null : <Making since={since} />}
        {results.length === 0 && since === undefined ? (
          <Empty icon="image" title="No images yet">
            <p>Describe what you want to see: subject, scene, style, light, colours.</p>
          </Empty>
        ) : (
          <Gallery account={account} results={results} />
        )}
      </div>
      <form className="bench-side" onSubmit={run} aria-label="Image">
        <SelectField label="Model" value={model?.uid ?? ''} onText={set('model')}>
          <ModelOptions models={models} />
        </SelectField>
        <TextArea
          label="Prompt"
          value={wish.prompt}
          onText={set('prompt')}
          placeholder="A lighthouse at dusk, watercolour"
          rows={4}
          required
        />
        <References
          label="Reference images"
          hint="Up to 16. The prompt says what to keep and what to change."
          most={16}
          chosen={references}
          onChosen={setReferences}
        />
        <Look wish={wish} set={set} />
        <CostHint most={priceOf(tier, { image: 1 })} />
        <Button type="submit" look="primary" icon="image" busy={since !== undefined} disabled={!wish.prompt.trim()}>
          Generate image
        </Button>
        <details className="fold">
          <summary>As code</summary>
          <SnippetTabs subject={{ kind: 'image', model: model?.uid ?? '', body: shortened(body) }} />
        </details>
      </form>
    </div>
  )
}

function Gallery({ account, results }: { account: string; results: readonly Result[] }) {
  return (
    <ul className="gallery">
      {results.map((result) => (
        <li key={result.id}>
          <Picture account={account} result={result} />
        </li>
      ))}
    </ul>
  )
}

function Look({ wish, set }: { wish: Wish; set: (name: keyof Wish) => (text: string) => void }) {
  return (
    <>
      <SelectField label="Size" value={wish.size} onText={set('size')}>
        {Object.entries(SIZES).map(([group, sizes]) => (
          <optgroup key={group} label={group}>
            {sizes.map((size) => (
              <option key={size}>{size}</option>
            ))}
          </optgroup>
        ))}
      </SelectField>
      <div className="pair">
        <Choice
          label="Quality"
          value={wish.quality}
          options={['auto', 'low', 'medium', 'high']}
          onText={set('quality')}
        />
        <Choice label="Resolution" value={wish.resolution} options={['1k', '2k', '4k']} onText={set('resolution')} />
      </div>
      <Choice label="Format" value={wish.format} options={['png', 'jpeg', 'webp']} onText={set('format')} />
    </>
  )
}

/** Explicit pixels decide the price class over the resolution field. */
function resolutionOf(wish: Wish): string {
  const sides = wish.size.split('x').map(Number)
  if (sides.length !== 2) return wish.resolution
  const longest = Math.max(...sides)
  return longest <= 1536 ? '1k' : longest <= 2688 ? '2k' : '4k'
}

export function Choice({
  label,
  value,
  options,
  onText,
}: {
  label: string
  value: string
  options: readonly string[]
  onText: (text: string) => void
}) {
  return (
    <SelectField label={label} value={value} onText={onText}>
      {options.map((option) => (
        <option key={option}>{option}</option>
      ))}
    </SelectField>
  )
}

/** A data URI of megabytes says nothing in an example. */
function shortened(body: Record<string, unknown>): Record<string, unknown> {
  const cut = (value: unknown) =>
    typeof value === 'string' && value.startsWith('data:') ? `${value.slice(0, 40)}…` : value
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [name, Array.isArray(value) ? value.map(cut) : cut(value)]),
  )
}

function Making({ since }: { since: number }) {
  const [now, setNow] = useState(since)
  useEffect(() => {
    const timer = window.setInterval(() => setNow(Date.now()), 1000)
    return () => window.clearInterval(timer)
  }, [])
  return (
    <div className="making">
      <span className="spinner" aria-hidden="true" />
      <p role="status">Making the image. This usually takes 10 to 60 seconds.</p>
      <span className="muted">{formatDuration((now - since) / 1000)}</span>
    </div>
  )
}

function Picture({ account, result }: { account: string; result: Result }) {
  const [broken, setBroken] = useState(false)
  const source = assetSource(result.url)
  return (
    <figure className="picture">
      {source.inline && !broken ? (
        <a href={source.href} target="_blank" rel="noopener noreferrer">
          <img src={source.href} alt={result.prompt} loading="lazy" onError={() => setBroken(true)} />
        </a>
      ) : (
        <Note>
          The image cannot be shown here{broken ? '; its link may have expired' : ''}.{' '}
          {source.href ? (
            <a href={source.href} target="_blank" rel="noopener noreferrer">
              Open it
            </a>
          ) : null}
        </Note>
      )}
      <figcaption>
        <p className="clamp">{result.prompt}</p>
        {result.receipt ? <ReceiptLine account={account} receipt={result.receipt} /> : null}
      </figcaption>
    </figure>
  )
}
