import { api } from '../../api.ts'
import { formatMs, formatWhole, plural } from '../../format.ts'
import { refresh, useQuery } from '../../query.ts'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Card, Page, Stat, Stats, When } from '../../ui/page.tsx'
import { Empty, Fault, Loaded, Skeleton } from '../../ui/state.tsx'
import type { LedgerCheck, LedgerChecks } from '../../wire.ts'

/** Quick enough to show progress; one small row is read. */
const LOOK_EVERY_MS = 1_500

export function LedgerPage() {
  const checks = useQuery('ledger-check', api.ledgerChecks, { everyMs: LOOK_EVERY_MS })
  const { busy, error, go } = useAction(async (_, full: boolean) => {
    await api.checkLedger(full)
    refresh('ledger-check')
  })
  const wait = busy || (checks.data?.running ?? null) !== null
  return (
    <Page
      title="Ledger check"
      lead="Recomputes the ledger: balances equal the sum of their transfers, holds resolve once, limits and hours count what was used, grants are in the audit, and each charge follows from its usage and its price."
      actions={
        <>
          <Button right="ledger:write" busy={wait} onClick={() => go(true)}>
            Check everything
          </Button>
          <Button right="ledger:write" look="primary" icon="ledger" busy={wait} onClick={() => go(false)}>
            Check now
          </Button>
        </>
      }
    >
      {error ? <Fault error={error} /> : null}
      <Loaded query={checks} skeleton={<Skeleton lines={3} />}>
        {(data) => <Checks checks={data} />}
      </Loaded>
    </Page>
  )
}

function Checks({ checks: { running, last, nextAt } }: { checks: LedgerChecks }) {
  return (
    <div role="status" className="stack">
      {running ? (
        <Card title={running.full ? 'Checking everything' : 'Checking'}>
          <progress
            className="check-progress"
            max={Math.max(running.progress.total, 1)}
            value={running.progress.accounts}
            aria-label="Accounts checked"
          />
          <p className="muted">
            {formatWhole(running.progress.accounts)} of {plural(running.progress.total, 'account')},{' '}
            {formatWhole(running.checked.transfers)} transfers
          </p>
        </Card>
      ) : null}
      {last ? (
        <Result check={last} />
      ) : running ? null : (
        <Card>
          <Empty icon="ledger" title="Not checked yet">
            <p>The check only reads, and continues where the last one ended.</p>
          </Empty>
        </Card>
      )}
      <p className="muted">
        {nextAt ? (
          <>
            The next nightly check is at <When at={nextAt} />.
          </>
        ) : (
          'There is no nightly check: TOLLGATE_VERIFY_AT is off.'
        )}
      </p>
    </div>
  )
}

function Result({ check }: { check: LedgerCheck }) {
  const { ok, problems, failure, endedAt, startedAt } = check
  const tookMs = endedAt ? Date.parse(endedAt) - Date.parse(startedAt) : 0
  return (
    <>
      <div className={`check-result tone-${ok ? 'good' : 'bad'}`}>
        <Icon name={ok ? 'check' : 'warning'} size={28} />
        <div>
          <p className="check-result-title">
            {ok
              ? 'The ledger is in order'
              : failure === null
                ? `${plural(problems.length, 'problem')} found`
                : 'The last check did not finish'}
          </p>
          <p className="muted">
            {failure === null ? null : `${failure}. `}
            {check.full ? 'Everything was checked' : 'New entries were checked'} in {formatMs(tookMs)}, ended{' '}
            {endedAt ? <When at={endedAt} /> : null}.
          </p>
        </div>
      </div>
      <Stats>
        {Object.entries(check.checked).map(([name, count]) => (
          <Stat
            key={name}
            label={name.charAt(0).toUpperCase() + name.slice(1)}
            value={formatWhole(count)}
            note="checked"
          />
        ))}
      </Stats>
      {problems.length ? (
        <Card title="Problems">
          <ul className="problem-list">
            {problems.map((problem) => (
              <li key={problem}>{problem}</li>
            ))}
          </ul>
        </Card>
      ) : null}
    </>
  )
}
