// The types of a job, and every change of it.

import type { Viewer } from '../admission/api-key.ts'
import type { JobStatus } from '../catalog/generation-answers.ts'
import type { FaultName } from '../kernel/fault.ts'
import type { JobFacts } from './views.ts'
import type { Ending, WorkTable } from './work.ts'

export type Verdict = 'COMPLETED' | 'FAILED' | 'CANCELLED'

export interface JobError {
  /** Absent in rows of an earlier version. */
  readonly name?: FaultName
  readonly code: number
  /** The HTTP status for the usage row. */
  readonly status: number
  readonly message: string
  readonly reason?: string
}

/** Stored files of one result. */
export interface JobFiles {
  readonly video: string
  readonly lastFrame?: string
}

/** What the vendor reports as delivered. */
export interface Delivered {
  readonly seconds?: number
  readonly resolution?: string
  readonly outputTokens?: number
}

/** What callers may see of a job. */
export interface JobRow {
  readonly id: string
  readonly account_id: string
  readonly key_id: string
  readonly product: string
  readonly hold_id: string
  readonly status: JobStatus
  readonly input: string
  readonly error: JobError | null
  readonly files: readonly JobFiles[] | null
  readonly version: number
  readonly created_at: Date
  readonly started_at: Date | null
  readonly completed_at: Date | null
}

export interface ListedJob extends JobRow {
  /** Null while the hold exists. */
  readonly charged: bigint | null
}

export interface CallbackRow extends JobRow {
  readonly callback_url: string | null
}

/** A job that a worker has leased. */
export interface ClaimedJob extends Omit<CallbackRow, 'input'> {
  readonly catalog_version: number
  readonly request: string
  readonly attempts: number
  readonly misses: number
  readonly submissions: number
  readonly vendor: string | null
  readonly route: number
  /** The vendor credential that made the task; null: the vendor's only one. */
  readonly credential: string | null
  readonly task_id: string | null
  readonly verdict: Verdict | null
  readonly delivered: Delivered | null
  /** By the database's clock. */
  readonly overdue: boolean
  readonly watching: boolean
  readonly age_ms: number
  /** Time since a submission whose outcome is unknown; null when there is none. */
  readonly submit_age_ms: number | null
  readonly submit_started_seconds: number | null
}

export interface Jobs {
  /** The jobs' steps. */
  readonly work: WorkTable<ClaimedJob, StepEnding>
  find(id: string): Promise<JobRow | undefined>
  findCallback(id: string): Promise<CallbackRow | undefined>
  /** Newest first, fewer than `limit` when the rows are large. `before` is the id of the last job of the previous page. */
  list(
    account: string,
    /** Without a viewer: all jobs of the account. */
    options: { status?: JobStatus; before?: string; limit: number; viewer?: Viewer },
  ): Promise<{ rows: ListedJob[]; more: boolean }>
  /** The jobs whose status differs from the one seen. When the rows are large, the rest comes with the next call. */
  changed(ids: readonly string[], seen: readonly JobStatus[]): Promise<JobRow[]>
  /** Records that a submission is about to be sent. False when the hold is gone, the job was cancelled, or a submission is in flight. */
  beginSubmission(job: Fenced & Held, to: SubmittedTo): Promise<boolean>
  /** The vendor has certainly not accepted it. */
  refusedSubmission(job: Fenced): Promise<boolean>
  /** The vendor has accepted it. The stored order is no longer needed. */
  submitted(job: Fenced, taskId: string, request: string): Promise<boolean>
  /** The same from a worker that lost the job after it sent the submission (counted from 1). False: the task is known, or the job is decided. */
  storeTask(
    job: { readonly id: string; readonly submission: number },
    taskId: string,
    request: string,
  ): Promise<boolean>
  isDecided(id: string): Promise<boolean>
  /** The vendor is working on it, or has finished and we are fetching the result. */
  processing(job: Fenced): Promise<void>
  /** Fixes how the job ends. The first decision is final. */
  decide(job: Fenced, decision: Decision): Promise<boolean>
  /** Sets the final status after the settlement. False while the hold exists. */
  conclude(job: Fenced & Held): Promise<boolean>
  noteAnomaly(id: string, anomaly: string): Promise<void>
  body(id: string): Promise<string | undefined>
  /** Stores an order that is too large for the reservation's statement. Call it before the reservation. */
  storeBody(id: string, body: string): Promise<void>
  dropBody(id: string): Promise<void>
  isHeld(job: { readonly account_id: string; readonly hold_id: string }): Promise<boolean>
  /** The number of open jobs whose tasks this vendor credential made. No other credential can see those tasks. */
  openAt(vendor: string, credential: string): Promise<number>
  /** Removes orders whose job was never created. */
  prune(): Promise<void>
  facts(): Promise<JobFacts>
}

interface SubmittedTo {
  readonly vendor: string
  readonly route: number
  readonly credential?: string | undefined
}

interface Fenced {
  readonly id: string
  readonly version: number
}

interface Held {
  readonly account_id: string
  readonly hold_id: string
}

export interface StepEnding extends Ending {
  readonly attempts: number
  readonly misses: number
  /** Ignored when the job has this status already, or a later one. */
  readonly status?: 'CONNECT' | 'PROCESSING'
}

export interface Decision {
  readonly verdict: Verdict
  readonly error?: JobError
  readonly files?: readonly JobFiles[]
  readonly delivered?: Delivered
  /** How long the vendor's task is still watched after the decision. */
  readonly watchMs?: number
}
