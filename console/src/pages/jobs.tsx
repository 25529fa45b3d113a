import { api } from '../api.ts'
import { useList } from '../query.ts'
import { setQuery, useLocation } from '../router.tsx'
import { LinkButton } from '../ui/button.tsx'
import { SelectField } from '../ui/field.tsx'
import { Ago, Amount, Page } from '../ui/page.tsx'
import { Empty } from '../ui/state.tsx'
import { Named, TableCard } from '../ui/table.tsx'
import type { Job } from '../wire.ts'
import { isFinished, JOB_STATUS_LABELS, JobBadge, JobDuration, promptOf, useJobRefresh } from './job-progress.tsx'

export function JobsPage({ account }: { account: string }) {
  const { query } = useLocation()
  const status = query.get('status') ?? ''
  const base = `/a/${encodeURIComponent(account)}`
  const list = useList(`jobs/${account}/${status}`, (cursor, signal) =>
    api.jobs(account, { status: status || undefined, cursor }, signal),
  )
  useJobRefresh(list.data?.some((job) => !isFinished(job.status)) ?? false, list.reload)
  const to = (job: Job) => `${base}/jobs/${encodeURIComponent(job.id)}`
  return (
    <Page
      title="Videos"
      lead="Video jobs run in the background. Their credits are held until the job ends, and released if it fails."
      actions={
        <SelectField
          label="Status"
          quiet
          value={status}
          onText={(text) => setQuery({ status: text })}
          options={[['', 'All statuses'], ...Object.entries(JOB_STATUS_LABELS)]}
        />
      }
    >
      <TableCard
        label="Jobs"
        list={list}
        rowKey={(job) => job.id}
        to={to}
        empty={
          <Empty
            icon="jobs"
            title={status ? 'No jobs with this status' : 'No jobs yet'}
            action={
              <LinkButton to={`${base}/playground/video`} icon="video">
                Make a video
              </LinkButton>
            }
          />
        }
        columns={[
          { head: 'Job', main: true, cell: (job) => <Named to={to(job)} name={promptOf(job)} sub={job.id} /> },
          { head: 'Model', cell: (job) => job.product, tight: true },
          { head: 'Status', cell: (job) => <JobBadge status={job.status} />, tight: true },
          { head: 'Duration', cell: (job) => <JobDuration job={job} />, right: true },
          { head: 'Created', cell: (job) => <Ago at={job.createdAt} />, tight: true },
          {
            head: 'Credits',
            right: true,
            cell: (job) => (job.charged === null ? '–' : <Amount value={job.charged} />),
          },
        ]}
      />
    </Page>
  )
}
