// Answers to the examples of the endpoints, as they were recorded: see test/pages/answers.ts.
import recorded from './answers.json' with { type: 'json' }

export interface RecordedAnswer {
  readonly status: number
  readonly type: string
  /** What the call cost, in credits. */
  readonly charge?: string
  readonly body?: unknown
  readonly text?: string
  /** Of sound: its size. */
  readonly bytes?: number
}

/** By the id of the endpoint. */
export const RECORDED: Readonly<Record<string, RecordedAnswer>> = recorded
