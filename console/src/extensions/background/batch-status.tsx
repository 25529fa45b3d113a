// What a batch is doing, in a word and in figures.
import { formatWhole } from '../../format.ts'
import { Badge, type Tone } from '../../ui/page.tsx'
import type { Batch } from '../../wire.ts'

type Status = Batch['status']

const TONES: Record<Status, Tone> = {
  validating: 'busy',
  in_progress: 'busy',
  finalizing: 'busy',
  completed: 'good',
  failed: 'bad',
  expired: 'warn',
  cancelling: 'warn',
  cancelled: 'warn',
}

export const BATCH_STATUS_LABELS: Record<Status, string> = {
  validating: 'Checking the file',
  in_progress: 'In progress',
  finalizing: 'Writing the results',
  completed: 'Completed',
  failed: 'Not begun',
  expired: 'Expired',
  cancelling: 'Being cancelled',
  cancelled: 'Cancelled',
}

export const isOpen = ({ endedAt }: Batch) => endedAt === null
export const isCancellable = ({ status }: Batch) => status === 'validating' || status === 'in_progress'

export function BatchBadge({ status }: { status: Status }) {
  return <Badge tone={TONES[status]}>{BATCH_STATUS_LABELS[status]}</Badge>
}

export function Done({ counts: { total, completed, failed } }: Pick<Batch, 'counts'>) {
  return (
    <>
      {formatWhole(completed + failed)} of {formatWhole(total)}
    </>
  )
}
