import { useState } from 'react'
import { useDraft } from '../../draft.ts'
import { formatDuration } from '../../format.ts'
import { randomId } from '../../random.ts'
import { useAction } from '../../ui/action.ts'
import { SelectField, TextArea } from '../../ui/field.tsx'
import { Note } from '../../ui/page.tsx'
import { Empty, Fault } from '../../ui/state.tsx'
import { assetSource } from '../asset.ts'
import { useSeconds } from '../job-progress.tsx'
import { BenchForm, type BenchProps, modelTab, play, useWish } from './bench.tsx'
import { type Receipt, ReceiptLine } from './cost.tsx'
import { type Reference, References } from './references.tsx'

const SIZES = {
  'By the model': ['auto'],
  'Ratio, with the resolution below': ['1:1', '4:3', '16:9', '9:16'],
  Pixels: ['1024x1024', '1536x1024', '1024x1536', '2048x2048', '2048x1152', '3840x2160', '2160x3840'],
}

const QUALITIES = ['auto', 'low', 'medium', 'high']
const RESOLUTIONS = ['1k', '2k', '4k']
const FORMATS = ['png', 'jpeg', 'webp']

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

export const ImagePlay = modelTab('image', 'image', (model) => model.type === 'image', ImageBench)

function ImageBench({ account, models }: BenchProps) {
  const bench = useWish(`image/${account}`, FIRST, models)
  const { wish, model, set } = bench
  const [references, setReferences] = useDraft<Reference[]>(`image/${account}/references`, [])
  const [results, setResults] = useDraft<Result[]>(`image/${account}/results`, [])
  const body = {
    prompt: wish.prompt.trim(),
    size: wish.size,
    quality: wish.quality,
    resolution: wish.resolution,
    output_format: wish.format,
    ...(references.length ? { image_urls: references.map((reference) => reference.source) } : {}),
  }
  const call = useAction(async (signal) => {
    const { answer, ...receipt } = await play<{ data?: { url?: string }[] }>(
      account,
      'POST',
      '/alpha/v1/images/generations',
      { body: { model: model?.uid, ...body }, signal },
    )
    const made = (answer.data ?? []).flatMap(({ url }) =>
      url ? [{ id: randomId(), prompt: body.prompt, url, ...receipt }] : [],
    )
    setResults((old) => [...made, ...old].slice(0, 24))
  })
  return (
    <div className="bench">
      <div className="stack">
        {call.error ? <Fault error={call.error} /> : null}
        {call.busy ? <Making /> : null}
        {results.length === 0 && !call.busy ? (
          <Empty icon="image" title="No images yet">
            <p>Describe what you want to see: subject, scene, style, light, colors.</p>
          </Empty>
        ) : (
          <Gallery account={account} results={results} />
        )}
      </div>
      <BenchForm
        kind="image"
        action="Generate image"
        icon="image"
        bench={bench}
        call={call}
        ready={body.prompt !== ''}
        account={account}
        body={body}
      >
        <TextArea
          label="Prompt"
          value={wish.prompt}
          onText={set('prompt')}
          placeholder="A lighthouse at dusk, watercolor"
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
      </BenchForm>
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
        <SelectField label="Quality" value={wish.quality} onText={set('quality')} options={QUALITIES} />
        <SelectField label="Resolution" value={wish.resolution} onText={set('resolution')} options={RESOLUTIONS} />
      </div>
      <SelectField label="Format" value={wish.format} onText={set('format')} options={FORMATS} />
    </>
  )
}

function Making() {
  const [since] = useState(() => Date.now())
  const now = useSeconds(true)
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
