import { api } from '../../api.ts'
import { useDraft } from '../../draft.ts'
import { refresh, useQuery } from '../../query.ts'
import { Link } from '../../router.tsx'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Checkbox, SelectField, TextArea, TextField } from '../../ui/field.tsx'
import { Card } from '../../ui/page.tsx'
import { Empty, Fault, Loaded } from '../../ui/state.tsx'
import {
  CancelJob,
  isFinished,
  JobDuration,
  JobProgress,
  JobResult,
  promptOf,
  useJobRefresh,
} from '../job-progress.tsx'
import { BenchForm, type BenchProps, modelTab, useWish } from './bench.tsx'
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

const RATIOS = ['16:9', '9:16', '1:1', '4:3', '3:4', '21:9', 'adaptive']

export const VideoPlay = modelTab('video', 'video', (model) => model.type === 'video', VideoBench)

function VideoBench({ account, models }: BenchProps) {
  const bench = useWish(`video/${account}`, FIRST, models)
  const { wish, model, set } = bench
  const [frames, setFrames] = useDraft<Reference[]>(`video/${account}/frame`, [])
  const [jobs, setJobs] = useDraft<string[]>(`video/${account}/jobs`, [])
  const uid = model?.uid ?? ''
  const resolutions = RESOLUTIONS[uid] ?? ['480p', '720p', '1080p']
  const resolution = resolutions.includes(wish.resolution) ? wish.resolution : '720p'
  const seconds = Number(wish.duration) || 5
  const body = {
    prompt: wish.prompt.trim(),
    duration: seconds,
    ratio: wish.ratio,
    resolution,
    generate_audio: wish.audio,
    ...(frames[0] ? { first_frame: frames[0].source } : {}),
  }
  const call = useAction(async () => {
    const response = await api.play(account, 'POST', '/v1/video/seedance', { body: { model: uid, ...body } })
    const { data } = (await response.json()) as { data?: { jobId?: string } }
    const id = data?.jobId
    if (!id) throw new Error('The gateway accepted the request but named no job.')
    setJobs((old) => [id, ...old].slice(0, 12))
    refresh(`jobs/${account}`, `account/${account}`)
  })
  return (
    <div className="bench">
      <div className="stack">
        {jobs.length === 0 ? (
          <Empty icon="video" title="No videos yet">
            <p>A video takes a few minutes. You may leave this page; the job goes on without you.</p>
          </Empty>
        ) : (
          jobs.map((id) => (
            <VideoJob key={id} account={account} id={id} onDrop={() => setJobs(jobs.filter((one) => one !== id))} />
          ))
        )}
      </div>
      <BenchForm
        kind="video"
        action="Generate video"
        icon="video"
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
          placeholder="A paper boat drifts down a stream"
          rows={4}
          required
        />
        <References label="First frame" most={1} chosen={frames} onChosen={setFrames} />
        <div className="pair">
          <TextField
            label="Seconds"
            type="number"
            inputMode="numeric"
            min={4}
            max={LONGEST[uid] ?? 30}
            value={wish.duration}
            onText={set('duration')}
            required
          />
          <SelectField label="Resolution" value={resolution} onText={set('resolution')} options={resolutions} />
        </div>
        <SelectField label="Ratio" value={wish.ratio} onText={set('ratio')} options={RATIOS} />
        <Checkbox label="With sound" checked={wish.audio} onCheck={set('audio')} />
        {call.error ? <Fault error={call.error} /> : null}
      </BenchForm>
    </div>
  )
}

function VideoJob({ account, id, onDrop }: { account: string; id: string; onDrop: () => void }) {
  const job = useQuery(`job/${account}/${id}`, (signal) => api.job(account, id, signal))
  useJobRefresh(job.data !== undefined && !isFinished(job.data.status), job.reload)
  return (
    <Card>
      <div className="row-spread">
        <p className="clamp">
          <b>{job.data ? promptOf(job.data) : `Job ${id}`}</b>
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
