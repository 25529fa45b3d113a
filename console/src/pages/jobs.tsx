import { api } from '../api.ts'
import { useList } from '../query.ts'
import { Link, setQuery, usePlace } from '../router.tsx'
import { LinkButton } from '../ui/button.tsx'
import { SelectField } from '../ui/field.tsx'
import { Ago, Amount, Card, Page } from '../ui/page.tsx'
import { Empty, Loaded, More } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import type { Job } from '../wire.ts'
import { isOver, JobBadge, JobDuration, useJobRefresh } from './job-progress.tsx'

const STATUSES = ['PENDING', 'CONNECT', 'PROCESSING', 'COMPLETED', 'FAILED', 'CANCELLED'] as const

export function JobsPage({ account }: { account: string }) {
  const { query } = usePlace()
  const status = query.get('status') ?? ''
  const base = `/a/${encodeURIComponent(account)}`
  const list = useList(`jobs/${account}/${status}`, (cursor, signal) =>
    api.jobs(account, { status: status || undefined, cursor }, signal),
  )
  useJobRefresh(list.data?.some((job) => !isOver(job.status)) ?? false, list.reload)
  const to = (job: Job) => `${base}/jobs/${encodeURIComponent(job.id)}`
  return (
    <Page
      title="Jobs"
      lead="Videos are made in the background. Their credits are held until a job ends, and given back when it fails."
      actions={
        <SelectField label="Status" quiet value={status} onText={(text) => setQuery({ status: text })}>
          <option value="">All statuses</option>
          {STATUSES.map((name) => (
            <option key={name} value={name}>
              {name.charAt(0) + name.slice(1).toLowerCase()}
            </option>
          ))}
        </SelectField>
      }
    >
      <Card flush>
        <Loaded query={list}>
          {(jobs) =>
            jobs.length === 0 ? (
              <Empty
                icon="jobs"
                title={status ? 'No jobs with this status' : 'No jobs yet'}
                action={
                  <LinkButton to={`${base}/playground/video`} icon="video">
                    Make a video
                  </LinkButton>
                }
              />
            ) : (
              <Table
                label="Jobs"
                rows={jobs}
                rowKey={(job) => job.id}
                to={to}
                columns={[
                  {
                    head: 'Job',
                    main: true,
                    cell: (job) => (
                      <>
                        <Link to={to(job)} className="cell-link clamp">
                          {promptOf(job)}
                        </Link>
                        <code className="cell-sub">{job.id}</code>
                      </>
                    ),
                  },
                  { head: 'Model', cell: (job) => job.product ?? String(job.inputParams.model ?? '–'), tight: true },
                  { head: 'Status', cell: (job) => <JobBadge status={job.status} />, tight: true },
                  { head: 'Took', cell: (job) => <JobDuration job={job} />, right: true },
                  { head: 'Created', cell: (job) => <Ago at={job.createdAt} />, tight: true },
                  {
                    head: 'Credits',
                    right: true,
                    cell: (job) => (job.charged == null ? '–' : <Amount value={job.charged} />),
                  },
                ]}
              />
            )
          }
        </Loaded>
        <More list={list} />
      </Card>
    </Page>
  )
}

function promptOf(job: Job): string {
  const prompt = job.inputParams.prompt
  return typeof prompt === 'string' && prompt ? prompt : `Job ${job.id}`
}
