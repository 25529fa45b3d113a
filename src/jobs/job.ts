// What a job is, and every way it changes.

import type { Viewer } from '../admission/api-key.ts'
import type { JobStatus } from '../catalog/generation-answers.ts'
import type { FaultName } from '../kernel/fault.ts'
import type { JobFacts } from './views.ts'
import type { Ending, WorkTable } from './work.ts'

export type Verdict = 'COMPLETED' | 'FAILED' | 'CANCELLED'

export interface JobError {
  /** Absent in rows of the version before. */
  readonly name?: FaultName
  readonly code: number
  /** The HTTP status that goes with it, for the usage row. */
  readonly status: number
  readonly message: string
  readonly reason?: string
}

/** Stored files of one result. */
export interface JobFiles {
  readonly video: string
  readonly lastFrame?: string
}

/** What the vendor says that it delivered. */
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
  /** Null while the hold is there. */
  readonly charged: bigint | null
}

export interface CallbackRow extends JobRow {
  readonly callback_url: string | null
}

/** A job in the hands of a worker. */
export interface ClaimedJob extends Omit<CallbackRow, 'input'> {
  readonly catalog_version: number
  readonly request: string
  readonly attempts: number
  readonly misses: number
  readonly submissions: number
  readonly vendor: string | null
  readonly route: number
  /** Which of the vendor's credentials made the task; null: the only one. */
  readonly credential: string | null
  readonly task_id: string | null
  readonly verdict: Verdict | null
  readonly delivered: Delivered | null
  /** By the database's clock. */
  readonly overdue: boolean
  readonly watching: boolean
  readonly age_ms: number
  /** Since a submission left of which nothing is known; null when there is none. */
  readonly submit_age_ms: number | null
  readonly submit_started_seconds: number | null
}

export interface Jobs {
  /** Their steps. */
  readonly work: WorkTable<ClaimedJob, StepEnding>
  find(id: string): Promise<JobRow | undefined>
  findCallback(id: string): Promise<CallbackRow | undefined>
  /** Newest first, fewer than `limit` where they are large; `before` is the id of the last one of the page before. */
  list(
    account: string,
    /** Without a viewer: all of them. */
    options: { status?: JobStatus; before?: string; limit: number; viewer?: Viewer },
  ): Promise<{ rows: ListedJob[]; more: boolean }>
  /** Those whose status is another than the one that was seen; where they are large, the rest is told next time. */
  changed(ids: readonly string[], seen: readonly JobStatus[]): Promise<JobRow[]>
  /** Says that a submission is about to leave. Refused when the hold is gone, the job was cancelled, or one is under way. */
  beginSubmission(job: Fenced & Held, to: SubmittedTo): Promise<boolean>
  /** The vendor has certainly not accepted it. */
  refusedSubmission(job: Fenced): Promise<boolean>
  /** The vendor has it. The stored request is no longer needed. */
  submitted(job: Fenced, taskId: string, request: string): Promise<boolean>
  /** The same from a worker that has lost the job since its submission (counted from 1) left. False: it is known, or too late. */
  storeTask(
    job: { readonly id: string; readonly submission: number },
    taskId: string,
    request: string,
  ): Promise<boolean>
  isDecided(id: string): Promise<boolean>
  /** The vendor works on it, or has made it and we are fetching it. */
  processing(job: Fenced): Promise<void>
  /** Decides how the job ends; once, for ever. */
  decide(job: Fenced, decision: Decision): Promise<boolean>
  /** After the money: the status says what was decided. Refused while the hold is there. */
  conclude(job: Fenced & Held): Promise<boolean>
  noteAnomaly(id: string, anomaly: string): Promise<void>
  body(id: string): Promise<string | undefined>
  /** Keeps a request that is too large to travel with the reservation; to be called before it. */
  storeBody(id: string, body: string): Promise<void>
  dropBody(id: string): Promise<void>
  isHeld(job: { readonly account_id: string; readonly hold_id: string }): Promise<boolean>
  /** How many open jobs were made by this credential of a vendor, and can be looked after by no other. */
  openAt(vendor: string, credential: string): Promise<number>
  /** Removes the requests of creations that died half way. */
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
  /** Moves forward only; ignored when the job is there already, or beyond. */
  readonly status?: 'CONNECT' | 'PROCESSING'
}

export interface Decision {
  readonly verdict: Verdict
  readonly error?: JobError
  readonly files?: readonly JobFiles[]
  readonly delivered?: Delivered
  /** How long the vendor's task is looked at afterwards. */
  readonly watchMs?: number
}
