// What an agent did for one task: the calls and tools of its session, part by part, with cost, time and tokens.
import { api } from '../../api.ts'
import { formatCompact, formatMs, formatWhole } from '../../format.ts'
import { useQuery } from '../../query.ts'
import { Link, useLocation } from '../../router.tsx'
import { Amount, Card, Name, Note, Page, Stat, Stats, When } from '../../ui/page.tsx'
import { Loaded } from '../../ui/state.tsx'
import { Table } from '../../ui/table.tsx'
import type { Run } from '../../wire.ts'

type Part = Run['parts'][number]

const MAIN = 'The agent itself'

export const runPath = (account: string, run: string) =>
  `/a/${encodeURIComponent(account)}/run?run=${encodeURIComponent(run)}`

export function RunPage({ account }: { account: string }) {
  const run = useLocation().query.get('run') ?? ''
  const found = useQuery(`run/${account}/${run}`, (signal) => api.run(account, run, signal))
  const back = { to: `/a/${encodeURIComponent(account)}/usage`, label: 'Usage' }
  return (
    <Page title="Run" lead={<Name text={run} />} back={back}>
      <Loaded query={found}>{(data) => <RunBody account={account} run={data} />}</Loaded>
    </Page>
  )
}

function RunBody({ account, run }: { account: string; run: Run }) {
  return (
    <>
      <Stats>
        <Stat label="Credits" value={<Amount value={run.charged} />} />
        <Stat
          label="Calls and tools"
          value={formatWhole(run.calls)}
          note={run.failed > 0 ? `${run.failed} failed` : ''}
        />
        <Stat
          label="Tokens in / out"
          value={`${formatCompact(run.inputTokens)} / ${formatCompact(run.outputTokens)}`}
          note={run.models.join(', ')}
        />
        <Stat label="Began" value={<When at={run.firstAt} />} note={`took ${lengthOf(run)}`} />
      </Stats>
      <Card title="Agents" flush>
        <Table
          label="Agents of the run"
          rows={inTree(run.parts)}
          rowKey={({ part }) => part.agent ?? ''}
          columns={[
            {
              head: 'Agent',
              main: true,
              cell: ({ part, depth }) => <Name text={`${'– '.repeat(depth)}${part.agent ?? MAIN}`} />,
            },
            { head: 'Calls', right: true, cell: ({ part }) => formatWhole(part.calls) },
            { head: 'Failed', right: true, cell: ({ part }) => formatWhole(part.failed) },
            { head: 'Took', right: true, cell: ({ part }) => lengthOf(part) },
            {
              head: 'Tokens in / out',
              right: true,
              cell: ({ part }) => `${formatCompact(part.inputTokens)} / ${formatCompact(part.outputTokens)}`,
            },
            { head: 'Credits', right: true, cell: ({ part }) => <Amount value={part.charged} /> },
          ]}
        />
      </Card>
      <Card title="Calls and tools" flush>
        <Table
          label="Calls and tools of the run"
          rows={run.items}
          rowKey={({ requestId }) => requestId}
          columns={[
            {
              head: 'Call',
              main: true,
              cell: ({ requestId, product, kind }) => (
                <Link to={`/a/${encodeURIComponent(account)}/usage/${requestId}`} className="cell-link">
                  <Name text={kind === 'tool' ? `Tool: ${product}` : product} />
                </Link>
              ),
            },
            { head: 'Agent', cell: ({ agent }) => <Name text={agent ?? MAIN} /> },
            { head: 'At', cell: ({ at }) => <When at={at} /> },
            { head: 'Status', right: true, cell: ({ status }) => String(status) },
            { head: 'Took', right: true, cell: ({ durationMs }) => formatMs(durationMs) },
            {
              head: 'Tokens in / out',
              right: true,
              cell: (one) => `${formatCompact(one.inputTokens)} / ${formatCompact(one.outputTokens)}`,
            },
            { head: 'Credits', right: true, cell: ({ charged }) => <Amount value={charged} /> },
          ]}
        />
      </Card>
      {run.next ? <Note>These are the first {run.items.length} calls. The sums are of all.</Note> : null}
    </>
  )
}

const lengthOf = ({ firstAt, lastAt }: Pick<Run, 'firstAt' | 'lastAt'>) =>
  formatMs(Date.parse(lastAt) - Date.parse(firstAt))

/** Each part below the one that started it; one whose parent made no call of its own stands at the first level. */
function inTree(parts: readonly Part[]): { part: Part; depth: number }[] {
  const names = new Set(parts.map(({ agent }) => agent))
  const seen = new Set<Part>()
  const below = (parent: string | null, depth: number): { part: Part; depth: number }[] =>
    parts
      .filter((part) => part.agent !== null && (names.has(part.parent) ? part.parent : null) === parent)
      .flatMap((part) => {
        if (seen.has(part)) return []
        seen.add(part)
        return [{ part, depth }, ...below(part.agent, depth + 1)]
      })
  const main = parts.filter(({ agent }) => agent === null).map((part) => ({ part, depth: 0 }))
  const rest = below(null, 1)
  // Two that name each other as their parent have no place in the tree, and must not be lost.
  return [
    ...main,
    ...rest,
    ...parts.filter((part) => part.agent !== null && !seen.has(part)).map((part) => ({ part, depth: 1 })),
  ]
}
