// The two places of the console, an account and the gateway, each with at most nine sections. A section with several pages
// shows them as tabs. Menu, tabs and finder read this table.

import { useEffect } from 'react'
import { api } from './api.ts'
import { useQuery } from './query.ts'
import { match } from './router.tsx'
import { lastAccount, rememberAccount, useMayManage, useSession } from './session.tsx'
import type { IconName } from './ui/icon.tsx'

export type Place = 'account' | 'operator'

interface MenuPage {
  readonly to: string
  readonly label: string
  /** Other words by which people look for what is on this page. */
  readonly also?: string
}

export interface Section {
  readonly label: string
  readonly icon: IconName
  readonly pages: readonly [MenuPage, ...MenuPage[]]
}

export interface Navigation {
  /** Where the person is now. */
  readonly place: Place
  readonly sections: Readonly<Record<Place, readonly Section[]>>
  readonly current: Section | undefined
}

const one = (label: string, icon: IconName, to: string, also = ''): Section => ({
  label,
  icon,
  pages: [{ to, label, also }],
})

function accountSections(account: string, mayManage: boolean): Section[] {
  const base = `/a/${encodeURIComponent(account)}`
  return [
    one('Overview', 'overview', base, 'spend requests latency balance runway'),
    one('Playground', 'play', `${base}/playground`, 'chat image audio video compare prompts'),
    one('Models', 'models', `${base}/models`, 'prices'),
    {
      label: 'Keys',
      icon: 'key',
      pages: [
        { to: `${base}/keys`, label: 'Keys', also: 'rotate revoke limits permissions expiry byok' },
        { to: `${base}/content-logging`, label: 'Content logging', also: 'recorded requests responses delete privacy' },
      ],
    },
    one('Usage', 'usage', `${base}/usage`, 'calls requests errors latency'),
    {
      label: 'Jobs',
      icon: 'jobs',
      pages: [
        { to: `${base}/jobs`, label: 'Videos', also: 'jobs' },
        { to: `${base}/batches`, label: 'Batches', also: 'files' },
      ],
    },
    {
      label: 'Statement',
      icon: 'statement',
      pages: [
        { to: `${base}/statement`, label: 'Statement', also: 'balance csv pdf invoice month' },
        { to: `${base}/statement/movements`, label: 'All movements', also: 'ledger credits transactions' },
      ],
    },
    {
      label: 'Alerts',
      icon: 'bell',
      pages: [
        { to: `${base}/alerts`, label: 'Alerts' },
        ...(mayManage
          ? [{ to: `${base}/alerts/rules`, label: 'Alert rules', also: 'budget receivers email slack' }]
          : []),
        { to: `${base}/deliveries`, label: 'Deliveries', also: 'webhooks' },
      ],
    },
    ...(mayManage ? [one('Members', 'members', `${base}/members`, 'invite people role webhook secret')] : []),
  ]
}

const OPERATOR: readonly Section[] = [
  one('Home', 'chart', '/operator/home', 'spend margin health'),
  {
    label: 'Calls',
    icon: 'live',
    pages: [
      { to: '/operator/calls', label: 'All calls', also: 'usage requests errors search accounts' },
      { to: '/operator/live', label: 'Live calls', also: 'requests in flight' },
    ],
  },
  one('Accounts', 'accounts', '/operator/accounts', 'customers credits suspend close'),
  one('Catalog', 'catalog', '/operator/catalogue', 'prices routes models roll back versions'),
  one('Vendors', 'vendors', '/operator/vendors', 'credential breaker test health provider'),
  {
    label: 'Finance',
    icon: 'ledger',
    pages: [
      { to: '/operator/finance', label: 'Margin', also: 'revenue cost model customer vendor month profit' },
      { to: '/operator/finance/statements', label: 'Statements', also: 'invoice pdf zip month customers' },
      { to: '/operator/ledger', label: 'Ledger check', also: 'verify' },
    ],
  },
  {
    label: 'Gateway alerts',
    icon: 'bell',
    pages: [
      { to: '/operator/alerts', label: 'Gateway alerts' },
      { to: '/operator/alerts/rules', label: 'Gateway alert rules', also: 'receivers email slack' },
      { to: '/operator/deliveries', label: 'Gateway deliveries', also: 'webhooks' },
    ],
  },
  one('Audit', 'audit', '/operator/audit', 'who changed what'),
  {
    label: 'System',
    icon: 'system',
    pages: [
      { to: '/operator/system', label: 'System', also: 'limits version processes database currency credit worth' },
      { to: '/operator/operators', label: 'Operators', also: 'invite people' },
    ],
  },
]

/** Pages that belong to both places, such as the profile, keep the menu that was there. */
let lastPlace: Place = 'account'

export function useNavigation(path: string, account: string | undefined): Navigation {
  const { user } = useSession()
  const mayManage = useMayManage(account ?? '')
  const isOperator = user.role === 'operator'
  const sections = {
    account: account ? accountSections(account, mayManage) : [],
    operator: isOperator ? OPERATOR : [],
  }
  if (path.startsWith('/operator')) lastPlace = 'operator'
  else if (path.startsWith('/a/')) lastPlace = 'account'
  const place = !isOperator ? 'account' : account ? lastPlace : 'operator'
  return { place, sections, current: sections[place].find(({ pages }) => pages.some(({ to }) => isWithin(to, path))) }
}

/** The overview's address is the beginning of all the others. */
function isWithin(to: string, path: string): boolean {
  return path === to || (!/^\/a\/[^/]+$/.test(to) && path.startsWith(`${to}/`))
}

export interface CurrentAccount {
  readonly id: string | undefined
  /** Only where the address names it. */
  readonly inPath: string | undefined
  readonly name: string | undefined
  readonly mayPick: boolean
}

/** The account of the address, also among the operator's pages; on pages without one, the account that was open last. */
export function useCurrentAccount(path: string): CurrentAccount {
  const { user, accounts } = useSession()
  const operator = user.role === 'operator'
  const inPath = (
    match('/a/:account', path) ??
    match('/a/:account/:rest', path) ??
    match('/a/:account/:rest/:more', path)
  )?.account
  const opened = (match('/operator/accounts/:account', path) ?? match('/operator/accounts/:account/:tab', path))
    ?.account
  const named = inPath ?? opened
  useEffect(() => {
    if (named) rememberAccount(named)
  }, [named])
  const last = lastAccount()
  const id = named ?? (operator || accounts.some((entry) => entry.id === last) ? last : undefined) ?? accounts[0]?.id
  const own = accounts.find((entry) => entry.id === id)
  // Operators act on accounts that they are no member of; those are looked up by id.
  const looked = useQuery(operator && id && !own ? `account/${id}` : undefined, (signal) =>
    api.account(id ?? '', signal),
  )
  const gone = operator && !own && looked.error !== undefined && named === undefined
  return {
    id: gone ? undefined : id,
    inPath,
    name: own?.name ?? looked.data?.name ?? (gone ? undefined : id),
    mayPick: operator || accounts.length > 1,
  }
}
