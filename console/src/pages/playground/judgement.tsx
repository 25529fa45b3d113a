// The two tabs whose models judge texts: rerank and moderations.
import { useDraft } from '../../draft.ts'
import { useAction } from '../../ui/action.ts'
import { BarList } from '../../ui/chart.tsx'
import { TextArea, TextField } from '../../ui/field.tsx'
import { BenchAnswer, BenchForm, type BenchProps, modelTab, play, useWish } from './bench.tsx'
import type { Receipt } from './cost.tsx'

interface Wish {
  model: string
  query: string
  text: string
}

interface Result {
  rows: { name: string; value: number; shown: string }[]
  receipt?: Receipt
}

type Kind = 'rerank' | 'moderation'

interface Answers {
  rerank: { results: { index: number; relevance_score: number }[] }
  moderation: { results: { flagged: boolean; category_scores: Record<string, number> }[] }
}

const FIRST: Wish = { model: '', query: '', text: '' }
const TEXTS_MAX = 50
const WORDS = {
  rerank: {
    path: '/v1/rerank',
    action: 'Rerank',
    title: 'Relevance',
    empty: 'Write a question, and one document a line.',
  },
  moderation: { path: '/v1/moderations', action: 'Moderate', title: 'Highest score', empty: 'Write one text a line.' },
} as const

export const RerankPlay = modelTab(
  'rerank',
  'models',
  (model) => model.type === 'rerank',
  (props: BenchProps) => <Bench kind="rerank" {...props} />,
)
export const ModerationPlay = modelTab(
  'moderation',
  'models',
  (model) => model.type === 'moderation',
  (props: BenchProps) => <Bench kind="moderation" {...props} />,
)

function rowsOf(texts: readonly string[], answer: Answers[Kind]): Result['rows'] {
  return answer.results.map((one, place) => {
    if ('relevance_score' in one)
      return { name: texts[one.index] ?? '', value: one.relevance_score, shown: one.relevance_score.toFixed(3) }
    const [category = '', score = 0] = Object.entries(one.category_scores).sort(([, a], [, b]) => b - a)[0] ?? []
    return { name: texts[place] ?? '', value: score, shown: one.flagged ? `flagged: ${category}` : 'fine' }
  })
}

function Bench({ kind, account, models }: BenchProps & { kind: Kind }) {
  const bench = useWish(`${kind}/${account}`, FIRST, models)
  const { wish, model, set } = bench
  const words = WORDS[kind]
  const [result, setResult] = useDraft<Result | undefined>(`${kind}/${account}/result`, undefined)
  const lines = wish.text.split('\n').map((line) => line.trim())
  const texts = lines.filter((line) => line !== '').slice(0, TEXTS_MAX)
  const body = kind === 'rerank' ? { query: wish.query, documents: texts } : { input: texts }
  const call = useAction(async (signal) => {
    const request = { body: { model: model?.uid, ...body }, signal }
    const { answer, ...receipt } = await play<Answers[Kind]>(account, 'POST', words.path, request)
    setResult({ rows: rowsOf(texts, answer), ...receipt })
  })
  return (
    <div className="bench">
      <BenchAnswer
        account={account}
        error={call.error}
        result={result}
        empty={{ icon: 'models', title: 'Results appear here', words: words.empty }}
      >
        {({ rows }) => (
          <>
            <h3>{words.title}</h3>
            <BarList label={words.title} rows={rows} />
          </>
        )}
      </BenchAnswer>
      <BenchForm
        kind={kind}
        action={words.action}
        icon="models"
        bench={bench}
        call={call}
        ready={texts.length > 0 && (kind === 'moderation' || wish.query !== '')}
        account={account}
        body={body}
      >
        {kind === 'rerank' ? (
          <TextField
            label="Query"
            value={wish.query}
            onText={set('query')}
            placeholder="When does the gate open?"
            required
          />
        ) : null}
        <TextArea
          label={kind === 'rerank' ? 'Documents' : 'Texts'}
          hint={`One per line, up to ${TEXTS_MAX}.`}
          value={wish.text}
          onText={set('text')}
          placeholder={'The toll gate opens at dawn\nA recipe for onion soup'}
          rows={6}
          required
        />
      </BenchForm>
    </div>
  )
}
