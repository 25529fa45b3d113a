// One key: its id, what it may do, how much of its limits is used, what it spent and what went wrong last.
import { useState } from 'react'
import { api } from '../api.ts'
import { callsPath } from '../period.ts'
import { useQuery } from '../query.ts'
import { Link } from '../router.tsx'
import { LinkButton } from '../ui/button.tsx'
import { CopyButton } from '../ui/code.tsx'
import { Ago, Badges, Card, Facts, Page, When } from '../ui/page.tsx'
import { Empty, Loaded } from '../ui/state.tsx'
import type { Key, NewKey } from '../wire.ts'
import { figureColumns, useKeyFigures } from './key-figures.tsx'
import { type Ask, KeyActions, KeyAsked, KeyState, restrictionsOf } from './keys.tsx'
import { describeLimits } from './limits.tsx'
import { NewKeyDialog } from './new-key.tsx'

/** The lists of keys are the only place that has it. */
async function findKey(account: string, id: string, signal: AbortSignal): Promise<Key | null> {
  let cursor: string | undefined
  do {
    const page = await api.keys(account, { cursor, limit: 200 }, signal)
    const found = page.items.find((key) => key.id === id)
    if (found) return found
    cursor = page.next ?? undefined
  } while (cursor !== undefined)
  return null
}

export function KeyPage({ account, id }: { account: string; id: string }) {
  const key = useQuery(`keys/${account}/one/${id}`, (signal) => findKey(account, id, signal))
  return (
    <Loaded query={key}>
      {(found) =>
        found ? <OneKey account={account} row={found} /> : <Empty icon="key" title="This account has no such key" />
      }
    </Loaded>
  )
}

function OneKey({ account, row }: { account: string; row: Key }) {
  const [ask, setAsk] = useState<Ask>()
  const [made, setMade] = useState<NewKey>()
  const figures = useKeyFigures(account)
  const home = `/a/${encodeURIComponent(account)}`
  const list = (names: readonly string[] | null) => (names ? <Badges names={names} /> : 'All')
  return (
    <Page
      title={row.name}
      back={{ to: `${home}/keys`, label: 'Keys' }}
      actions={
        <>
          <LinkButton to={callsPath(account, { period: '7d', key: row.id })}>Calls of this key</LinkButton>
          <KeyActions account={account} row={row} onAsk={setAsk} />
        </>
      }
    >
      <Card title="Key">
        <Facts
          items={[
            ['State', <KeyState key="s" row={row} now={Date.now()} />],
            [
              'Id',
              <span key="i" className="row">
                <code>{row.id}</code> <CopyButton text={row.id} />
              </span>,
            ],
            ['Begins and ends with', <code key="c">{`${row.prefix}…${row.last4}`}</code>],
            ['Created', <When key="m" at={row.createdAt} />],
            ['Last used', <Ago key="u" at={row.lastUsedAt} none="Never" />],
            ['Expires', row.expiresAt ? <When key="e" at={row.expiresAt} /> : 'Never'],
            row.replacedBy !== null && [
              'Replaced by',
              <Link key="r" to={`${home}/keys/${encodeURIComponent(row.replacedBy)}`}>
                its successor
              </Link>,
            ],
          ]}
        />
      </Card>
      <Card title="Last 7 days">
        <Facts
          items={figureColumns(account, figures, restrictionsOf)
            .filter(({ head }) => head !== 'Restrictions')
            .map(({ head, cell }) => [head, cell(row)] as const)}
        />
      </Card>
      <Card title="What it may do" lead="Edit the key to change this.">
        <Facts
          items={[
            ['Models', list(row.models)],
            ['Endpoints', list(row.endpoints)],
            ['From', list(row.ipRanges)],
            row.requiredLabels !== null && ['Required labels', list(row.requiredLabels)],
            row.routing?.vendors !== undefined && ['Vendors', list(row.routing.vendors)],
            row.routing?.regions !== undefined && ['Regions', list(row.routing.regions)],
            ['Limits', describeLimits(row.limits).join(', ') || 'None'],
          ]}
        />
        <div className="stack-tight">
          {figureColumns(account, figures, () => [])
            .find(({ head }) => head === 'Restrictions' && figures.get(row.id)?.limits.length)
            ?.cell(row)}
        </div>
      </Card>
      <KeyAsked account={account} ask={ask} onMade={setMade} onDone={() => setAsk(undefined)} />
      {made ? <NewKeyDialog made={made} onClose={() => setMade(undefined)} /> : null}
    </Page>
  )
}
