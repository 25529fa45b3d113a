import { type FormEvent, useState } from 'react'
import { api } from '../../api.ts'
import { useDraft } from '../../draft.ts'
import { priceOf, tierFor } from '../../pricing.ts'
import { refresh, useQuery } from '../../query.ts'
import { Link, useLocation } from '../../router.tsx'
import { Button } from '../../ui/button.tsx'
import { Checkbox, SelectField, TextArea, TextField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'
import { Empty, Fault, Loaded } from '../../ui/state.tsx'
import type { PublicModel } from '../../wire.ts'
import { CancelJob, isFinished, JobDuration, JobProgress, JobResult, useJobRefresh } from '../job-progress.tsx'
import { SnippetTabs } from '../model.tsx'
import { CostHint } from './cost.tsx'
import { Choice } from './image.tsx'
import { ModelOptions } from './model-options.tsx'
import { type Reference, References } from './references.tsx'

interface Wish {
  model: string
  prompt: string
  duration: string
  ratio: string
  resolution: string
  audio: boolean
}

const FIRST: Wish = { model: '', prompt: '', duration: '5', ratio: '16:9', resolution: '720p', audio: true }

/** What the two models take; the gateway has the last word. */
const LONGEST: Record<string, number> = { 'videogen-2.0': 15, 'videogen-2.5': 30 }
const RESOLUTIONS: Record<string, readonly string[]> = { 'videogen-2.5': ['480p', '720p'] }

export function VideoPlay({ account }: { account: string }) {
  const catalog = useQuery('public-catalog', api.publicCatalog)
  return (
    <Loaded query={catalog}>
      {({ models }) => {
        const offered = models.filter((model) => model.type === 'video')
        return offered.length ? (
          <VideoBench account={account} models={offered} />
        ) : (
          <Empty icon="video" title="No video model is enabled" />
        )
      }}
    </Loaded>
  )
}

function VideoBench({ account, models }: { account: string; models: readonly PublicModel[] }) {
  const { query } = useLocation()
  const [wish, setWish] = useDraft<Wish>(`video/${account}/wish`, FIRST)
  const [frames, setFrames] = useDraft<Reference[]>(`video/${account}/frame`, [])
  const [jobs, setJobs] = useDraft<string[]>(`video/${account}/jobs`, [])
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<Error>()
  const model = models.find((one) => one.uid === (wish.model || query.get('model'))) ?? models[0]
  const uid = model?.uid ?? ''
  const longest = LONGEST[uid] ?? 30
  const resolutions = RESOLUTIONS[uid] ?? ['480p', '720p', '1080p']
  const resolution = resolutions.includes(wish.resolution) ? wish.resolution : '720p'
  const set = (name: keyof Wish) => (text: string) => setWish((old) => ({ ...old, [name]: text }))
  const drop = (id: string) => setJobs((old) => old.filter((other) => other !== id))
  const seconds = Number(wish.duration) || 5

  const body = {
    prompt: wish.prompt.trim(),
    duration: seconds,
    ratio: wish.ratio,
    resolution,
    generate_audio: wish.audio,
    ...(frames[0] ? { first_frame: frames[0].source } : {}),
  }

  const run = async (event: FormEvent) => {
    event.preventDefault()
    setBusy(true)
    setError(undefined)
    try {
      const response = await api.play(account, 'POST', '/v1/video/seedance', { body: { model: uid, ...body } })
      const answer = (await response.json()) as { data?: { jobId?: string } }
      const id = answer.data?.jobId
      if (!id) throw new Error('The gateway accepted the request but named no job.')
      setJobs((old) => [id, ...old].slice(0, 12))
      refresh(`jobs/${account}`, `account/${account}`)
    } catch (problem) {
      setError(problem as Error)
    }
    setBusy(false)
  }

  const tier = model?.pricing ? tierFor(model.pricing, { resolution }, 0) : undefined
  return (
    <div className="bench">
      <div className="stack">
        {jobs.length === 0 ? (
          <Empty icon="video" title="No videos yet">
            <p>A video takes a few minutes. You may leave this page; the job goes on without you.</p>
          </Empty>
        ) : (
          jobs.map((id) => <VideoJob key={id} account={account} id={id} onDrop={() => drop(id)} />)
        )}
      </div>
      <form className="bench-side" onSubmit={run} aria-label="Video">
        <SelectField label="Model" value={uid} onText={set('model')}>
          <ModelOptions models={models} />
        </SelectField>
        <TextArea
          label="Prompt"
          value={wish.prompt}
          onText={set('prompt')}
          placeholder="A paper boat drifts down a stream"
          rows={4}
          required
        />
        <References label="First frame" most={1} chosen={frames} onChosen={setFrames} />
        <Shape wish={{ ...wish, resolution }} longest={longest} resolutions={resolutions} set={set} />
        <Checkbox label="With sound" checked={wish.audio} onCheck={(audio) => setWish((old) => ({ ...old, audio }))} />
        {error ? <Fault error={error} /> : null}
        <CostHint most={priceOf(tier, { second: seconds })} />
        <Button type="submit" look="primary" icon="video" busy={busy} disabled={!wish.prompt.trim()}>
          Generate video
        </Button>
        <details className="fold">
          <summary>As code</summary>
          <SnippetTabs subject={{ kind: 'video', model: uid, body }} />
        </details>
      </form>
    </div>
  )
}

function Shape({
  wish,
  longest,
  resolutions,
  set,
}: {
  wish: Wish
  longest: number
  resolutions: readonly string[]
  set: (name: keyof Wish) => (text: string) => void
}) {
  return (
    <>
      <div className="pair">
        <TextField
          label="Seconds"
          type="number"
          inputMode="numeric"
          min={4}
          max={longest}
          value={wish.duration}
          onText={set('duration')}
          required
        />
        <Choice label="Resolution" value={wish.resolution} options={resolutions} onText={set('resolution')} />
      </div>
      <Choice
        label="Ratio"
        value={wish.ratio}
        options={['16:9', '9:16', '1:1', '4:3', '3:4', '21:9', 'adaptive']}
        onText={set('ratio')}
      />
    </>
  )
}

function VideoJob({ account, id, onDrop }: { account: string; id: string; onDrop: () => void }) {
  const job = useQuery(`job/${account}/${id}`, (signal) => api.job(account, id, signal))
  useJobRefresh(job.data !== undefined && !isFinished(job.data.status), job.reload)
  const prompt = typeof job.data?.inputParams.prompt === 'string' ? job.data.inputParams.prompt : `Job ${id}`
  return (
    <Card>
      <div className="row-spread">
        <p className="clamp">
          <b>{prompt}</b>
        </p>
        <div className="row">
          {job.data ? <CancelJob account={account} job={job.data} onDone={job.reload} /> : null}
          {!job.data || isFinished(job.data.status) ? (
            <Button small onClick={onDrop}>
              Hide
            </Button>
          ) : null}
        </div>
      </div>
      <Loaded query={job}>
        {(data) => (
          <>
            <JobProgress job={data} />
            <JobResult job={data} />
            <p className="receipt">
              <span>
                <JobDuration job={data} />
              </span>
              <Link to={`/a/${encodeURIComponent(account)}/jobs/${encodeURIComponent(id)}`}>Details</Link>
            </p>
          </>
        )}
      </Loaded>
    </Card>
  )
}
