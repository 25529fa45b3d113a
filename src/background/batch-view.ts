// A batch as the SDKs read it.
import type { BatchRow } from './batch-table.ts'
import { secondsOf } from './files.ts'

export function viewBatch(batch: BatchRow): object {
  const { status, errors, ended_at: endedAt } = batch
  const moment = (at: Date | null) => at && secondsOf(at)
  const endedAs = (name: string) => (status === name ? moment(endedAt) : null)
  return {
    id: batch.id,
    object: 'batch',
    endpoint: batch.endpoint,
    errors: errors && { object: 'list', data: errors },
    input_file_id: batch.input_file_id,
    completion_window: batch.completion_window,
    status,
    output_file_id: batch.output_file_id,
    error_file_id: batch.error_file_id,
    created_at: secondsOf(batch.created_at),
    in_progress_at: moment(batch.in_progress_at),
    expires_at: moment(batch.expires_at),
    finalizing_at: moment(batch.finalizing_at),
    completed_at: endedAs('completed'),
    failed_at: endedAs('failed'),
    expired_at: endedAs('expired'),
    cancelling_at: moment(batch.cancelling_at),
    cancelled_at: endedAs('cancelled'),
    request_counts: { total: batch.total, completed: batch.completed, failed: batch.failed },
    metadata: batch.metadata,
  }
}
