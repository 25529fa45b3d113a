import { useState } from 'react'
import { api } from '../../api.ts'
import { formatMs, formatWhole, plural } from '../../format.ts'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Card, Page, Stat, Stats } from '../../ui/page.tsx'
import { Empty, Fault, Skeleton } from '../../ui/state.tsx'
import type { LedgerCheck } from '../../wire.ts'

export function LedgerPage() {
  const [result, setResult] = useState<{ check: LedgerCheck; tookMs: number }>()
  const { busy, error, go } = useAction(async () => {
    const started = performance.now()
    const check = await api.verifyLedger()
    setResult({ check, tookMs: performance.now() - started })
  })
  const problems = result?.check.problems ?? []
  return (
    <Page
      title="Ledger check"
      lead="Replays every transaction: balances equal the sum of their entries, holds resolve once, and each charge follows from its usage and its price."
      actions={
        <Button look="primary" icon="ledger" busy={busy} onClick={() => go()}>
          {result ? 'Check again' : 'Check now'}
        </Button>
      }
    >
      {error ? <Fault error={error} retry={() => go()} /> : null}
      <div role="status">
        {busy && !result ? (
          <Card>
            <Skeleton lines={3} />
          </Card>
        ) : result ? (
          <div className="stack">
            <div className={`check-result tone-${result.check.ok ? 'good' : 'bad'}`}>
              <Icon name={result.check.ok ? 'check' : 'warning'} size={28} />
              <div>
                <p className="check-result-title">
                  {result.check.ok ? 'The ledger is in order' : `${plural(problems.length, 'problem')} found`}
                </p>
                <p className="muted">Checked in {formatMs(result.tookMs)}.</p>
              </div>
            </div>
            <Stats>
              {Object.entries(result.check.checked).map(([name, count]) => (
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
          </div>
        ) : error ? null : (
          <Card>
            <Empty icon="ledger" title="Not checked yet">
              <p>The check only reads. On a large ledger it may take a while.</p>
            </Empty>
          </Card>
        )}
      </div>
    </Page>
  )
}
