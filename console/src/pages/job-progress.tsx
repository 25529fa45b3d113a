// The progress of a job: its steps, its duration, and at the end its result or the reason for its failure.
import { useEffect, useEffectEvent, useState } from 'react'
import { api } from '../api.ts'
import { formatDuration } from '../format.ts'
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { Icon } from '../ui/icon.tsx'
import { Badge, Note, type Tone } from '../ui/page.tsx'
import { toast, toastError } from '../ui/toast.tsx'
import type { Job, JobStatus } from '../wire.ts'
import { assetSource } from './asset.ts'

const FINISHED: ReadonlySet<JobStatus> = new Set(['COMPLETED', 'FAILED', 'CANCELLED'])
export const isFinished = (status: JobStatus) => FINISHED.has(status)
/** What is being worked on cannot be stopped any more. */
const CANCELLABLE: ReadonlySet<JobStatus> = new Set(['PENDING', 'CONNECT'])

const TONES: Record<JobStatus, Tone> = {
  PENDING: 'calm',
  CONNECT: 'busy',
  PROCESSING: 'busy',
  COMPLETED: 'good',
  FAILED: 'bad',
  CANCELLED: 'warn',
}

export const JOB_STATUS_LABELS: Record<JobStatus, string> = {
  PENDING: 'Queued',
  CONNECT: 'Submitted',
  PROCESSING: 'Processing',
  COMPLETED: 'Completed',
  FAILED: 'Failed',
  CANCELLED: 'Cancelled',
}

export function JobBadge({ status }: { status: JobStatus }) {
  return <Badge tone={TONES[status]}>{JOB_STATUS_LABELS[status]}</Badge>
}

export function promptOf(job: Job): string {
  const prompt = job.inputParams.prompt
  return typeof prompt === 'string' && prompt ? prompt : `Job ${job.id}`
}

const REFRESH_MS = 3000

/** Polls while a job is running and the page is visible. */
export function useJobRefresh(running: boolean, reload: () => void): void {
  const again = useEffectEvent(reload)
  useEffect(() => {
    if (!running) return
    const timer = window.setInterval(() => {
      if (document.visibilityState === 'visible') again()
    }, REFRESH_MS)
    return () => window.clearInterval(timer)
  }, [running])
}

/** The time, every second while something runs. */
export function useSeconds(running: boolean): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    if (!running) return
    const timer = window.setInterval(() => setNow(Date.now()), 1000)
    return () => window.clearInterval(timer)
  }, [running])
  return now
}

export function JobDuration({ job }: { job: Job }) {
  const running = !isFinished(job.status)
  const now = useSeconds(running)
  const end = job.completedAt ? Date.parse(job.completedAt) : running ? now : undefined
  return <>{end === undefined ? '–' : formatDuration((end - Date.parse(job.createdAt)) / 1000)}</>
}

const STEPS = ['PENDING', 'CONNECT', 'PROCESSING', 'COMPLETED'] as const

export function JobProgress({ job }: { job: Job }) {
  const failed = job.status === 'FAILED' || job.status === 'CANCELLED'
  const reached = failed ? (job.startedAt ? 2 : 1) : STEPS.indexOf(job.status as (typeof STEPS)[number])
  return (
    <div className="progress">
      <ol className="progress-steps">
        {STEPS.map((step, index) => {
          const state = index < reached || job.status === 'COMPLETED' ? 'done' : index === reached ? 'now' : 'next'
          return (
            <li
              key={step}
              className={`progress-${failed && index === reached ? 'failed' : state}`}
              aria-current={state === 'now' && !failed ? 'step' : undefined}
            >
              <span className="progress-dot">
                {state === 'done' ? (
                  <Icon name="check" size={12} />
                ) : failed && index === reached ? (
                  <Icon name="close" size={12} />
                ) : null}
              </span>
              {failed && index === reached ? JOB_STATUS_LABELS[job.status] : JOB_STATUS_LABELS[step]}
            </li>
          )
        })}
      </ol>
      <p className="sr-only" role="status">
        {JOB_STATUS_LABELS[job.status]}
      </p>
    </div>
  )
}

export function JobResult({ job }: { job: Job }) {
  if (job.status === 'FAILED' || job.status === 'CANCELLED')
    return (
      <Note tone="warn">
        {job.error?.message ?? (job.status === 'FAILED' ? 'The job failed.' : 'The job was cancelled.')} Its credits
        were given back.
      </Note>
    )
  if (job.status !== 'COMPLETED') return null
  const urls = job.outputResult?.flatMap(({ url }) => url) ?? []
  if (urls.length === 0) return <Note>The job ended without a file.</Note>
  return (
    <div className="stack">
      {urls.map((url) => (
        <VideoPlayer key={url} url={url} />
      ))}
    </div>
  )
}

function VideoPlayer({ url }: { url: string }) {
  const [broken, setBroken] = useState(false)
  const source = assetSource(url)
  return (
    <div className="stack-tight">
      {source.inline && !broken ? (
        <video
          className="player"
          controls
          playsInline
          preload="metadata"
          src={source.href}
          onError={() => setBroken(true)}
        />
      ) : (
        <Note>The video cannot be shown inside this page; open it in its own tab.</Note>
      )}
      {source.href ? (
        <p>
          <a href={source.href} target="_blank" rel="noopener noreferrer">
            Open the file
          </a>{' '}
          <span className="muted">Links expire; save what you want to keep.</span>
        </p>
      ) : null}
    </div>
  )
}

export function CancelJob({ account, job, onDone }: { account: string; job: Job; onDone: () => void }) {
  const cancel = async () => {
    await api.cancelJob(account, job.id)
    toast('The job is cancelled.')
    onDone()
  }
  const { busy, go } = useAction(() => cancel().catch(toastError))
  if (!CANCELLABLE.has(job.status)) return null
  return (
    <Button icon="stop" busy={busy} onClick={() => go()}>
      Cancel
    </Button>
  )
}
