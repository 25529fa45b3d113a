// The two places of the console, an account and the gateway, each with at most nine sections. A section with several
// pages shows them as tabs. Menu, tabs and finder read this table.

import { useEffect } from 'react'
import { api } from './api.ts'
import { useQuery } from './query.ts'
import { match } from './router.tsx'
import { lastAccount, rememberAccount, useMay, useSession } from './session.tsx'
import type { IconName } from './ui/icon.tsx'
import type { Permission } from './wire.ts'

export type Place = 'account' | 'operator'

interface MenuPage {
  readonly to: string
  readonly label: string
  /** Other words by which people look for what is on this page. */
  readonly also?: string
  /** The page is hidden from people without this right. Absent: shown to everybody in this section. */
  readonly right?: Permission
  /** Only where credits are sold. */
  readonly sold?: boolean
  /** The extension whose page it is. */
  readonly of?: string
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

const one = (label: string, icon: IconName, page: Omit<MenuPage, 'label'>): Section => ({
  label,
  icon,
  pages: [{ ...page, label }],
})

/** Below the address of the account. */
const ACCOUNT: readonly Section[] = [
  one('Overview', 'overview', { to: '', also: 'spend requests latency balance runway', right: 'usage:read' }),
  one('Playground', 'play', {
    to: '/playground',
    also: 'chat image audio video compare prompts',
    right: 'playground:write',
  }),
  one('Models', 'models', { to: '/models', also: 'prices openai anthropic', right: 'accounts:read' }),
  {
    label: 'Keys',
    icon: 'key',
    pages: [
      { to: '/keys', label: 'Keys', also: 'rotate revoke limits permissions expiry byok', right: 'keys:read' },
      { to: '/budgets', label: 'Budgets', also: 'end users tags sessions quota cap', right: 'budgets:read' },
      {
        to: '/purses',
        label: 'Purses',
        of: 'purses',
        also: 'customers resell end users balance top-up freeze',
        right: 'budgets:read',
      },
      {
        to: '/purse-prices',
        label: 'Prices for customers',
        of: 'purses',
        also: 'markup resell margin',
        right: 'budgets:read',
      },
      {
        to: '/purse-payments',
        label: 'Payments by customers',
        of: 'purses',
        also: 'stripe top-up refund resell webhook',
        right: 'purse-payments:read',
      },
      {
        to: '/sign-ins',
        label: 'Connected tools',
        of: 'agents',
        also: 'mcp oauth connect server agents',
        right: 'tool-connections:read',
      },
      {
        to: '/content-logging',
        label: 'Content logging',
        of: 'guardrails',
        also: 'recorded requests responses delete privacy',
        right: 'content-logging:read',
      },
    ],
  },
  one('Usage', 'usage', { to: '/usage', also: 'calls requests errors latency', right: 'usage:read' }),
  {
    label: 'Jobs',
    icon: 'jobs',
    pages: [
      { to: '/jobs', label: 'Videos', also: 'jobs', right: 'jobs:read' },
      { to: '/batches', label: 'Batches', of: 'background', also: 'files', right: 'jobs:read' },
    ],
  },
  {
    label: 'Billing',
    icon: 'statement',
    pages: [
      {
        to: '/billing',
        label: 'Balance & plan',
        of: 'sales',
        also: 'credits lots expiry redeem code card automatic top-up subscription cancel',
        right: 'accounts:read',
      },
      {
        to: '/buy',
        label: 'Buy credits',
        of: 'sales',
        also: 'pay pack payment checkout',
        right: 'purchases:read',
        sold: true,
      },
      {
        to: '/invoices',
        label: 'Invoices',
        of: 'sales',
        also: 'billing details address VAT pdf credit note',
        right: 'invoices:read',
      },
      {
        to: '/statement',
        label: 'Statement',
        of: 'finance',
        also: 'balance csv pdf invoice month',
        right: 'statements:read',
      },
      {
        to: '/statement/movements',
        label: 'All movements',
        also: 'ledger credits transactions',
        right: 'statements:read',
      },
    ],
  },
  {
    label: 'Alerts',
    icon: 'bell',
    pages: [
      { to: '/alerts', label: 'Alerts', of: 'alerts', right: 'alerts:read' },
      {
        to: '/alerts/rules',
        label: 'Alert rules',
        of: 'alerts',
        also: 'budget receivers email slack',
        right: 'alert-settings:read',
      },
      { to: '/deliveries', label: 'Deliveries', also: 'webhooks secret', right: 'deliveries:read' },
    ],
  },
  {
    label: 'Members',
    icon: 'members',
    pages: [
      { to: '/members', label: 'Members', also: 'invite people role', right: 'members:read' },
      { to: '/teams', label: 'Teams', also: 'projects members keys', right: 'teams:read' },
      {
        to: '/agents',
        label: 'Agents',
        of: 'agents',
        also: 'settings models programs signed in claude code codex sign-ins',
        right: 'teams:read',
      },
      { to: '/tokens', label: 'Tokens', also: 'operator api scopes', right: 'tokens:read' },
    ],
  },
]

const OPERATOR: readonly Section[] = [
  one('Home', 'chart', { to: '/operator/home', also: 'spend margin health', right: 'home:read' }),
  {
    label: 'Calls',
    icon: 'live',
    pages: [
      { to: '/operator/calls', label: 'All calls', also: 'usage requests errors search accounts', right: 'usage:read' },
      { to: '/operator/live', label: 'Live calls', also: 'requests in flight', right: 'live-calls:read' },
    ],
  },
  one('Accounts', 'accounts', {
    to: '/operator/accounts',
    also: 'customers credits suspend close',
    right: 'accounts:read',
  }),
  {
    label: 'Catalog',
    icon: 'catalog',
    pages: [
      {
        to: '/operator/catalog',
        label: 'Models and prices',
        also: 'catalog routes fallback weight',
        right: 'catalog:read',
      },
      {
        to: '/operator/catalog/list-prices',
        label: 'List prices',
        of: 'prices',
        also: 'vendor costs',
        right: 'catalog:read',
      },
      { to: '/operator/catalog/document', label: 'JSON document', also: 'catalog editor', right: 'catalog:read' },
      { to: '/operator/catalog/versions', label: 'Versions', also: 'catalog roll back undo', right: 'catalog:read' },
      {
        to: '/operator/guardrails',
        label: 'Guardrails',
        of: 'guardrails',
        also: 'redaction personal data pii patterns hook moderation block content filter',
        right: 'catalog:read',
      },
    ],
  },
  {
    label: 'Vendors',
    icon: 'vendors',
    pages: [
      {
        to: '/operator/vendors',
        label: 'Vendors',
        also: 'credential breaker test health latency openai anthropic',
        right: 'vendors:read',
      },
      {
        to: '/operator/products',
        label: 'Products',
        of: 'products',
        also: 'openapi import api operations sell preset',
        right: 'catalog:read',
      },
      {
        to: '/operator/tools',
        label: 'Tools',
        of: 'agents',
        also: 'mcp servers agents till held back',
        right: 'vendors:read',
      },
    ],
  },
  {
    label: 'Finance',
    icon: 'ledger',
    pages: [
      {
        to: '/operator/finance',
        label: 'Margin',
        of: 'finance',
        also: 'revenue cost model customer vendor month profit',
        right: 'margins:read',
      },
      {
        to: '/operator/finance/statements',
        label: 'Statements',
        of: 'finance',
        also: 'invoice pdf zip month customers',
        right: 'statements:read',
      },
      {
        to: '/operator/payments',
        label: 'Payments',
        of: 'sales',
        also: 'stripe refund quarantine dispute',
        right: 'payments:read',
      },
      {
        to: '/operator/plans',
        label: 'Plans, packs and codes',
        of: 'sales',
        also: 'subscription voucher coupon batch redeem',
        right: 'plans:read',
      },
      {
        to: '/operator/finance/invoices',
        label: 'Invoices',
        of: 'sales',
        also: 'issuer VAT series months zip credit note',
        right: 'invoices:read',
      },
      {
        to: '/operator/payments/settings',
        label: 'Payment settings',
        of: 'sales',
        also: 'stripe key webhook secret provider tax sell checklist',
        right: 'payment-settings:read',
      },
      {
        to: '/operator/finance/exports',
        label: 'Exports',
        of: 'finance',
        also: 'cloudevents webhook openmeter lago stripe meters parquet s3 bucket focus backfill usage events',
        right: 'exports:read',
      },
      {
        to: '/operator/finance/vendor-reports',
        label: 'Vendor reconciliation',
        of: 'finance',
        also: 'compare openai anthropic openrouter bill reconcile discrepancy csv',
        right: 'vendor-reports:read',
      },
      { to: '/operator/ledger', label: 'Ledger check', also: 'verify', right: 'ledger:read', of: 'verify' },
    ],
  },
  {
    label: 'Gateway alerts',
    icon: 'bell',
    pages: [
      { to: '/operator/alerts', label: 'Gateway alerts', of: 'alerts', right: 'alerts:read' },
      {
        to: '/operator/alerts/rules',
        label: 'Gateway alert rules',
        of: 'alerts',
        also: 'receivers email slack',
        right: 'alert-settings:read',
      },
      { to: '/operator/deliveries', label: 'Gateway deliveries', also: 'webhooks', right: 'deliveries:read' },
    ],
  },
  one('Audit', 'audit', { to: '/operator/audit', also: 'who changed what', right: 'audit:read' }),
  {
    label: 'System',
    icon: 'system',
    pages: [
      {
        to: '/operator/system',
        label: 'System',
        also: 'limits version processes database currency credit worth',
        right: 'system:read',
      },
      {
        to: '/operator/sign-up',
        label: 'Sign-up',
        of: 'sales',
        also: 'registration domains terms starting credits invite customers',
        right: 'sign-up:read',
      },
      {
        to: '/operator/branding',
        label: 'Branding',
        of: 'sales',
        also: 'name logo color support reseller',
        right: 'branding:read',
      },
      { to: '/operator/mails', label: 'Mails', of: 'sales', also: 'preview template email', right: 'branding:read' },
      { to: '/operator/operators', label: 'Operators', also: 'invite people roles', right: 'operators:read' },
      { to: '/operator/tokens', label: 'Gateway tokens', also: 'operator api scopes', right: 'tokens:read' },
      {
        to: '/operator/login',
        label: 'Login',
        of: 'directory',
        also: 'single sign-on sso oidc provider second factor passkey',
        right: 'login-providers:read',
      },
    ],
  },
]

/** Pages that belong to both places, such as the profile, keep the menu that was there. */
let lastPlace: Place = 'account'

export function useNavigation(path: string, account: string | undefined): Navigation {
  const { user, salesEnabled, extensions } = useSession()
  const may = useMay()
  const isStaff = user.role !== 'user'
  const isShown =
    (has: (right: Permission) => boolean) =>
    ({ right, sold, of }: MenuPage) =>
      (right === undefined || has(right)) && (salesEnabled || !sold) && (of === undefined || extensions.includes(of))
  const sections = {
    account: account ? ACCOUNT.map(below(account)).flatMap(only(isShown((right) => may(right, account)))) : [],
    operator: isStaff ? OPERATOR.flatMap(only(isShown((right) => may(right)))) : [],
  }
  if (path.startsWith('/operator')) lastPlace = 'operator'
  else if (path.startsWith('/a/')) lastPlace = 'account'
  const place = !isStaff ? 'account' : account ? lastPlace : 'operator'
  return { place, sections, current: sections[place].find(({ pages }) => pages.some(({ to }) => isWithin(to, path))) }
}

const below =
  (account: string) =>
  ({ pages: [first, ...rest], ...section }: Section): Section => {
    const at = (page: MenuPage) => ({ ...page, to: `/a/${encodeURIComponent(account)}${page.to}` })
    return { ...section, pages: [at(first), ...rest.map(at)] }
  }

/** What of a section is shown. */
const only =
  (isShown: (page: MenuPage) => boolean) =>
  (section: Section): Section[] => {
    const [first, ...rest] = section.pages.filter(isShown)
    return first ? [{ ...section, pages: [first, ...rest] }] : []
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

/**
 * The account of the address, also among the operator's pages; on pages without one, the account that was open last.
 */
export function useCurrentAccount(path: string): CurrentAccount {
  const { accounts } = useSession()
  const operator = useMay()('accounts:read')
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
