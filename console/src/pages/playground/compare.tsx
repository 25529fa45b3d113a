// One question to up to four models at once: their answers side by side, with cost and time.
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { creditsText, parseCredits, sumCredits } from '../../credits.ts'
import { useDraft } from '../../draft.ts'
import { formatMs } from '../../format.ts'
import { Markdown } from '../../markdown.tsx'
import { refresh } from '../../query.ts'
import { useLocation } from '../../router.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { TextArea } from '../../ui/field.tsx'
import { Badge, Card, Note } from '../../ui/page.tsx'
import { Fault } from '../../ui/state.tsx'
import type { PublicModel } from '../../wire.ts'
import { type BenchProps, modelTab } from './bench.tsx'
import { Attached, canSee, speaksChat } from './chat.tsx'
import { chatBody, DEFAULT_SETTINGS, streamChat, type Turn } from './chat-stream.ts'
import { QuoteList, ReceiptLine, receiptOf } from './cost.tsx'
import { ModelDialog } from './model-picker.tsx'
import { needsEyes, type Reference } from './references.tsx'

const MODELS_MAX = 4

export const Compare = modelTab('chat', 'models', speaksChat, CompareRoom)

interface Wish {
  models: string[]
  prompt: string
}

function CompareRoom({ account, models }: BenchProps) {
  const { query } = useLocation()
  const [wish, setWish] = useDraft<Wish>(`compare/${account}/wish`, { models: [], prompt: '' })
  const [files, setFiles] = useDraft<Reference[]>(`compare/${account}/files`, [])
  const [adding, setAdding] = useState(false)
  const { answers, busy, run, stop } = useAnswers(account)
  const known = wish.models.filter((uid) => models.some((model) => model.uid === uid))
  const first = [query.get('model'), ...models.map(({ uid }) => uid)].filter((uid) => uid !== null)
  const chosen = known.length ? known : [...new Set(first)].slice(0, 2)
  const choose = (next: string[]) => setWish((old) => ({ ...old, models: next }))
  const prompt = wish.prompt.trim()
  const blind = chosen.filter((uid) => !canSee(models.find((model) => model.uid === uid)))
  const unreadable = blind.length > 0 && files.some(needsEyes)
  const ready = prompt !== '' && !unreadable
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (ready && !busy) run(chosen, (model) => bodyFor(model, prompt, files))
  }
  return (
    <div className="stack">
      <Card>
        <form className="stack" onSubmit={submit} aria-label="Compare">
          <div className="badges">
            {chosen.map((uid) => (
              <span key={uid} className="chip">
                {nameOf(models, uid)}
                {chosen.length > 1 ? (
                  <IconButton
                    icon="close"
                    label={`Leave out ${nameOf(models, uid)}`}
                    onClick={() => choose(chosen.filter((other) => other !== uid))}
                  />
                ) : null}
              </span>
            ))}
            {chosen.length < MODELS_MAX ? (
              <Button small icon="plus" onClick={() => setAdding(true)}>
                Add a model
              </Button>
            ) : null}
          </div>
          <TextArea
            label="Question"
            placeholder="All models get the same question."
            value={wish.prompt}
            onText={(text) => setWish((old) => ({ ...old, prompt: text }))}
            rows={3}
            required
          />
          <Attached sees={blind.length === 0 || files.some(needsEyes)} files={files} onFiles={setFiles} />
          {unreadable ? (
            <Note tone="warn">
              {blind.map((uid) => nameOf(models, uid)).join(', ')} cannot read images or PDFs. Leave{' '}
              {blind.length === 1 ? 'it' : 'them'} out, or remove the file.
            </Note>
          ) : null}
          <div className="talk-act">
            <QuoteList
              account={account}
              names={chosen.map((uid) => nameOf(models, uid))}
              bodies={ready ? chosen.map((uid) => bodyFor(uid, prompt, files)) : undefined}
            />
            {busy ? (
              <Button icon="stop" onClick={stop}>
                Stop
              </Button>
            ) : (
              <Button type="submit" look="primary" icon="send" disabled={!ready}>
                Ask {chosen.length === 1 ? 'it' : `all ${chosen.length}`}
              </Button>
            )}
          </div>
        </form>
      </Card>
      <Answers account={account} answers={answers} models={models} />
      {adding ? (
        <ModelDialog
          models={models.filter(({ uid }) => !chosen.includes(uid))}
          chosen={undefined}
          onPick={(uid) => {
            setAdding(false)
            choose([...chosen, uid])
          }}
          onClose={() => setAdding(false)}
        />
      ) : null}
    </div>
  )
}

const nameOf = (models: readonly PublicModel[], uid: string) => models.find((model) => model.uid === uid)?.name ?? uid

const bodyFor = (model: string, text: string, files: readonly Reference[]) =>
  chatBody({ ...DEFAULT_SETTINGS, model }, [{ id: '', role: 'user', text, files }])

/** One stream per model, each shown as it grows. */
function useAnswers(account: string) {
  const [answers, setAnswers] = useState<readonly Turn[]>([])
  const aborter = useRef<AbortController>(undefined)
  useEffect(() => () => aborter.current?.abort(), [])
  const put = (turn: Turn) => setAnswers((old) => old.map((one) => (one.id === turn.id ? turn : one)))
  const ask = async (answer: Turn, body: Record<string, unknown>, signal: AbortSignal) => {
    const last = await streamChat(account, body, answer, { signal, onChange: put })
    if (last.receipt && !signal.aborted) put({ ...last, receipt: await receiptOf(last.receipt.requestId) })
  }
  return {
    answers,
    busy: answers.some(({ state }) => state === 'running'),
    stop: () => aborter.current?.abort(),
    run: (models: readonly string[], bodyOf: (model: string) => Record<string, unknown>) => {
      aborter.current?.abort()
      const control = new AbortController()
      aborter.current = control
      const fresh = models.map((id): Turn => ({ id, role: 'assistant', text: '', model: id, state: 'running' }))
      setAnswers(fresh)
      void Promise.all(fresh.map((answer) => ask(answer, bodyOf(answer.id), control.signal))).then(() =>
        refresh(`overview/${account}`, `usage/${account}`, `account/${account}`),
      )
    },
  }
}

function Answers({
  account,
  answers,
  models,
}: {
  account: string
  answers: readonly Turn[]
  models: readonly PublicModel[]
}) {
  const cost = (turn: Turn) => Number(parseCredits(turn.receipt?.charged ?? '') ?? Number.POSITIVE_INFINITY)
  const time = (turn: Turn) => turn.receipt?.durationMs ?? Number.POSITIVE_INFINITY
  const best = (of: (turn: Turn) => number) => {
    const known = answers.filter((turn) => turn.state === 'done' && Number.isFinite(of(turn)))
    return known.length > 1 ? known.reduce((least, turn) => (of(turn) < of(least) ? turn : least)).id : undefined
  }
  const [cheapest, fastest] = [best(cost), best(time)]
  const charged = answers.flatMap(({ receipt }) => receipt?.charged ?? [])
  return (
    <>
      {charged.length > 1 && charged.length === answers.length ? (
        <p className="muted" role="status">
          This comparison cost {creditsText(sumCredits(charged))}.
        </p>
      ) : null}
      <div className="compare">
        {answers.map((turn) => (
          <Card key={turn.id} title={nameOf(models, turn.id)}>
            {turn.receipt?.charged !== undefined ? (
              <div className="badges">
                <Badge tone={turn.id === cheapest ? 'good' : 'calm'}>
                  {creditsText(turn.receipt.charged)}
                  {turn.id === cheapest ? ', cheapest' : ''}
                </Badge>
                <Badge tone={turn.id === fastest ? 'good' : 'calm'}>
                  {formatMs(turn.receipt.durationMs)}
                  {turn.id === fastest ? ', fastest' : ''}
                </Badge>
              </div>
            ) : null}
            {turn.text ? <Markdown text={turn.text} /> : null}
            {turn.state === 'running' ? <span className="caret" aria-hidden="true" /> : null}
            {turn.problem ? <Fault error={turn.problem} /> : null}
            {turn.state === 'stopped' ? (
              <p className="muted small">Interrupted. You pay for what was delivered.</p>
            ) : null}
            {turn.receipt && turn.state !== 'running' ? <ReceiptLine account={account} receipt={turn.receipt} /> : null}
          </Card>
        ))}
      </div>
    </>
  )
}
