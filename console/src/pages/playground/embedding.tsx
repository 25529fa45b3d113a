import { useDraft } from '../../draft.ts'
import { useAction } from '../../ui/action.ts'
import { BarList } from '../../ui/chart.tsx'
import { Code } from '../../ui/code.tsx'
import { TextArea, TextField } from '../../ui/field.tsx'
import { BenchAnswer, BenchForm, type BenchProps, modelTab, play, useWish } from './bench.tsx'
import type { Receipt } from './cost.tsx'

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

export const EmbeddingPlay = modelTab('embedding', 'models', (model) => model.type === 'embedding', EmbeddingBench)

const EMPTY = {
  icon: 'models',
  title: 'No vectors yet',
  words: 'Write one text a line. The others are compared with the first.',
} as const

function EmbeddingBench({ account, models }: BenchProps) {
  const bench = useWish(`embedding/${account}`, FIRST, models)
  const { wish, model, set } = bench
  const [result, setResult] = useDraft<Result | undefined>(`embedding/${account}/result`, undefined)
  const lines = wish.text.split('\n').map((line) => line.trim())
  const texts = [...new Set(lines)].filter((line) => line !== '').slice(0, TEXTS_MAX)
  const body = { input: texts, ...(wish.dimensions ? { dimensions: Number(wish.dimensions) } : {}) }
  const call = useAction(async (signal) => {
    const request = { body: { model: model?.uid, ...body }, signal }
    const { answer, ...receipt } = await play<{ data: { embedding: number[] }[] }>(
      account,
      'POST',
      '/v1/embeddings',
      request,
    )
    setResult({ texts, vectors: answer.data.map(({ embedding }) => embedding), ...receipt })
  })
  return (
    <div className="bench">
      <BenchAnswer account={account} error={call.error} result={result} empty={EMPTY}>
        {Nearness}
      </BenchAnswer>
      <BenchForm
        kind="embedding"
        action="Embed"
        icon="models"
        bench={bench}
        call={call}
        ready={texts.length > 0}
        account={account}
        body={body}
      >
        <TextArea
          label="Texts"
          hint={`One per line, up to ${TEXTS_MAX}.`}
          value={wish.text}
          onText={set('text')}
          placeholder={'The toll gate opens at dawn\nToll gates open at dawn\nA recipe for onion soup'}
          rows={6}
          required
        />
        <TextField
          label="Dimensions"
          hint="Leave empty for all that the model has."
          type="number"
          min={1}
          value={wish.dimensions}
          onText={set('dimensions')}
        />
      </BenchForm>
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
