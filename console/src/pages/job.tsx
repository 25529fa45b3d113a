import { api } from '../api.ts'
import { useQuery } from '../query.ts'
import { Link } from '../router.tsx'
import { Code } from '../ui/code.tsx'
import { Card, Facts, Page, When } from '../ui/page.tsx'
import { Loaded } from '../ui/state.tsx'
import { CancelJob, isFinished, JobBadge, JobDuration, JobProgress, JobResult, useJobRefresh } from './job-progress.tsx'

export function JobPage({ account, job: id }: { account: string; job: string }) {
  const base = `/a/${encodeURIComponent(account)}`
  const job = useQuery(`job/${account}/${id}`, (signal) => api.job(account, id, signal))
  useJobRefresh(job.data !== undefined && !isFinished(job.data.status), job.reload)
  return (
    <Page
      title="Job"
      lead={<code>{id}</code>}
      back={{ to: `${base}/jobs`, label: 'Jobs' }}
      actions={job.data ? <CancelJob account={account} job={job.data} onDone={job.reload} /> : null}
    >
      <Loaded query={job}>
        {(data) => (
          <>
            <Card>
              <JobProgress job={data} />
              <JobResult job={data} />
            </Card>
            <Card title="Details">
              <Facts
                items={[
                  ['Status', <JobBadge key="s" status={data.status} />],
                  ['Duration', <JobDuration key="d" job={data} />],
                  ['Created', <When key="c" at={data.createdAt} />],
                  ['Started', data.startedAt ? <When key="b" at={data.startedAt} /> : '–'],
                  ['Ended', data.completedAt ? <When key="e" at={data.completedAt} /> : '–'],
                  data.inputParams.callback_url !== undefined &&
                    isFinished(data.status) && [
                      'Webhook',
                      <Link key="w" to={`${base}/deliveries/msg_${encodeURIComponent(id)}`}>
                        Its delivery
                      </Link>,
                    ],
                ]}
              />
            </Card>
            <Card title="Request">
              <Code label="Input" text={JSON.stringify(data.inputParams, null, 2)} />
            </Card>
          </>
        )}
      </Loaded>
    </Page>
  )
}
