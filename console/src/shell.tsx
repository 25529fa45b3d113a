// The frame around every page: navigation at the side, on phones at the bottom and in a sheet.
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { AccountPicker } from './account-picker.tsx'
import { api } from './api.ts'
import { BalanceBanner } from './banner.tsx'
import { Bell } from './bell.tsx'
import { Finder, type Place, useFinder } from './finder.tsx'
import { useQuery } from './query.ts'
import { Link, match, useLocation } from './router.tsx'
import { lastAccount, rememberAccount, signOut, useMayManage, useSession } from './session.tsx'
import { setTheme, type Theme, useTheme } from './theme.ts'
import { IconButton } from './ui/button.tsx'
import { Dialog } from './ui/dialog.tsx'
import { Segments } from './ui/field.tsx'
import { Icon, type IconName, Logo } from './ui/icon.tsx'

type NavigationLink = Place

export function Shell({ children }: { children: ReactNode }) {
  const { path } = useLocation()
  const [menu, setMenu] = useState(false)
  const [picking, setPicking] = useState(false)
  const main = useRef<HTMLElement>(null)
  const firstPath = useRef(path)
  const account = useCurrentAccount(path)
  const links = useNavigation(account.id)
  const [finding, setFinding] = useFinder()

  // After following a link the focus goes to the new page, so that a screen reader reads it and Tab starts there.
  useEffect(() => {
    if (firstPath.current === path) return
    firstPath.current = path
    setMenu(false)
    const heading = main.current?.querySelector<HTMLElement>('h1')
    ;(heading ?? main.current)?.focus({ preventScroll: true })
  }, [path])

  const current = (link: NavigationLink) => (isCurrent(link.to, path) ? ('page' as const) : undefined)
  const choose = () => {
    setMenu(false)
    setPicking(true)
  }
  const navigation = (
    <SideNav
      account={account.name}
      links={links}
      current={current}
      onPick={account.mayPick ? choose : undefined}
      onFind={() => {
        setMenu(false)
        setFinding(true)
      }}
    />
  )

  return (
    <div className="shell">
      <a href="#main" className="skip">
        Skip to content
      </a>
      <aside className="side" aria-label="Sidebar">
        <div className="side-head">
          <Link to="/" className="brand">
            <Logo /> Tollgate
          </Link>
          <Bell account={account.id} />
        </div>
        {navigation}
      </aside>
      <TopBar account={account} onPick={choose} onFind={() => setFinding(true)} onMenu={() => setMenu(true)} />
      <main id="main" className="main" ref={main} tabIndex={-1}>
        {account.inPath ? <BalanceBanner account={account.inPath} /> : null}
        {children}
      </main>
      <nav className="dock" aria-label="Main">
        {links.dock.map((link) => (
          <Link key={link.to} to={link.to} className="dock-link" aria-current={current(link)}>
            <Icon name={link.icon} size={20} />
            {link.label}
          </Link>
        ))}
        <button type="button" className="dock-link" onClick={() => setMenu(true)}>
          <Icon name="more" size={20} />
          More
        </button>
      </nav>
      {menu ? (
        <Dialog title="Menu" sheet onClose={() => setMenu(false)}>
          <div className="side">{navigation}</div>
        </Dialog>
      ) : null}
      {finding ? (
        <Finder
          account={account.id}
          pages={[...links.account, ...links.operator, { to: '/profile', label: 'Profile', icon: 'user' }]}
          onClose={() => setFinding(false)}
        />
      ) : null}
      {picking ? <AccountPicker onClose={() => setPicking(false)} current={account.id} /> : null}
    </div>
  )
}

/** On phones. */
function TopBar(props: { account: CurrentAccount; onPick: () => void; onFind: () => void; onMenu: () => void }) {
  const { account } = props
  return (
    <header className="top">
      <Link to="/" className="top-mark" aria-label="Tollgate, start">
        <Logo size={28} />
      </Link>
      <button type="button" className="top-account" onClick={props.onPick} disabled={!account.mayPick}>
        <span>{account.name ?? 'Choose an account'}</span>
        {account.mayPick ? <Icon name="down" size={14} /> : null}
      </button>
      <Bell account={account.id} />
      <IconButton icon="search" label="Find" onClick={props.onFind} />
      <IconButton icon="menu" label="Menu" onClick={props.onMenu} />
    </header>
  )
}

function SideNav({
  account,
  links,
  current,
  onPick,
  onFind,
}: {
  account: string | undefined
  links: Navigation
  current: (link: NavigationLink) => 'page' | undefined
  onPick: (() => void) | undefined
  onFind: () => void
}) {
  const { user } = useSession()
  const theme = useTheme()
  const group = (title: string, list: readonly NavigationLink[]) =>
    list.length === 0 ? null : (
      <nav className="nav-group" aria-label={title}>
        <p className="nav-title">{title}</p>
        <ul>
          {list.map((link) => (
            <li key={link.to}>
              <Link to={link.to} className="nav-link" aria-current={current(link)}>
                <Icon name={link.icon} />
                {link.label}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
    )
  return (
    <>
      <div className="side-scroll">
        <button type="button" className="finder-open" onClick={onFind}>
          <Icon name="search" size={16} />
          <span>Find</span>
          <kbd>{/Mac|iP/.test(navigator.platform) ? '⌘ K' : 'Ctrl K'}</kbd>
        </button>
        {onPick ? (
          <button type="button" className="switcher" onClick={onPick}>
            <span className="switcher-label">Account</span>
            <span className="switcher-name">{account ?? 'Choose one'}</span>
            <Icon name="swap" size={16} />
          </button>
        ) : null}
        {group(onPick ? 'Use' : (account ?? 'Account'), links.account)}
        {group('Operate', links.operator)}
      </div>
      <div className="side-foot">
        <Link to="/profile" className="who" aria-current={current({ to: '/profile', label: '', icon: 'user' })}>
          <span className="who-face" aria-hidden="true">
            {user.email.slice(0, 1)}
          </span>
          <span className="who-text">
            <span>{user.email}</span>
            <span className="who-role">{user.role === 'operator' ? 'Operator' : 'Profile'}</span>
          </span>
        </Link>
        <div className="side-tools">
          <ThemeSwitch theme={theme} />
          <span>
            <a href="/docs" className="icon-button" aria-label="API reference" title="API reference">
              <Icon name="docs" />
            </a>
            <IconButton icon="leave" label="Sign out" onClick={() => void signOut()} />
          </span>
        </div>
      </div>
    </>
  )
}

function ThemeSwitch({ theme }: { theme: Theme }) {
  const option = (value: Theme, icon: IconName, label: string) => ({
    value,
    label: (
      <>
        <Icon name={icon} size={15} />
        <span className="sr-only">{label}</span>
      </>
    ),
  })
  return (
    <Segments
      label="Theme"
      value={theme}
      options={[option('auto', 'auto', 'System'), option('light', 'sun', 'Light'), option('dark', 'moon', 'Dark')]}
      onPick={setTheme}
    />
  )
}

interface Navigation {
  account: readonly NavigationLink[]
  operator: readonly NavigationLink[]
  dock: readonly NavigationLink[]
}

function useNavigation(accountId: string | undefined): Navigation {
  const { user } = useSession()
  const mayManage = useMayManage(accountId ?? '')
  const base = `/a/${encodeURIComponent(accountId ?? '')}`
  const account: NavigationLink[] = accountId
    ? [
        { to: base, label: 'Overview', icon: 'overview' },
        { to: `${base}/playground`, label: 'Playground', icon: 'play' },
        { to: `${base}/models`, label: 'Models', icon: 'models' },
        { to: `${base}/keys`, label: 'Keys', icon: 'key' },
        { to: `${base}/usage`, label: 'Usage', icon: 'usage' },
        { to: `${base}/jobs`, label: 'Jobs', icon: 'jobs' },
        { to: `${base}/batches`, label: 'Batches', icon: 'batches' },
        { to: `${base}/statement`, label: 'Statement', icon: 'statement' },
        { to: `${base}/alerts`, label: 'Alerts', icon: 'bell' },
        { to: `${base}/deliveries`, label: 'Deliveries', icon: 'send' },
        ...(mayManage ? [{ to: `${base}/members`, label: 'Members', icon: 'members' } as const] : []),
      ]
    : []
  const operator: NavigationLink[] =
    user.role === 'operator'
      ? [
          { to: '/operator/home', label: 'Home', icon: 'chart' },
          { to: '/operator/accounts', label: 'Accounts', icon: 'accounts' },
          { to: '/operator/catalogue', label: 'Catalog', icon: 'catalog' },
          { to: '/operator/vendors', label: 'Vendors', icon: 'vendors' },
          { to: '/operator/live', label: 'Live requests', icon: 'live' },
          { to: '/operator/alerts', label: 'Alerts', icon: 'bell' },
          { to: '/operator/deliveries', label: 'Deliveries', icon: 'send' },
          { to: '/operator/ledger', label: 'Ledger check', icon: 'ledger' },
          { to: '/operator/audit', label: 'Audit', icon: 'audit' },
          { to: '/operator/operators', label: 'Operators', icon: 'user' },
          { to: '/operator/system', label: 'System', icon: 'system' },
        ]
      : []
  const first = accountId ? account.filter((link) => /Overview|Playground|Keys|Usage/.test(link.label)) : []
  return { account, operator, dock: first.length ? first : operator.slice(0, 4) }
}

function isCurrent(to: string, path: string): boolean {
  // The overview's address is the beginning of all the others.
  if (/^\/a\/[^/]+$/.test(to)) return path === to
  return path === to || path.startsWith(`${to}/`)
}

interface CurrentAccount {
  id: string | undefined
  /** Only where the address names it. */
  inPath: string | undefined
  name: string | undefined
  mayPick: boolean
}

/** The account of the address; on pages without one, the account that was open last. */
function useCurrentAccount(path: string): CurrentAccount {
  const { user, accounts } = useSession()
  const operator = user.role === 'operator'
  const inPath = (
    match('/a/:account', path) ??
    match('/a/:account/:rest', path) ??
    match('/a/:account/:rest/:more', path) ??
    match('/operator/accounts/:account', path) ??
    match('/operator/accounts/:account/:rest', path)
  )?.account
  useEffect(() => {
    if (inPath) rememberAccount(inPath)
  }, [inPath])
  const last = lastAccount()
  const id = inPath ?? (operator || accounts.some((entry) => entry.id === last) ? last : undefined) ?? accounts[0]?.id
  const own = accounts.find((entry) => entry.id === id)
  // Operators act on accounts that they are no member of; those are looked up by id.
  const looked = useQuery(operator && id && !own ? `account/${id}` : undefined, (signal) =>
    api.account(id ?? '', signal),
  )
  const gone = operator && !own && looked.error !== undefined && inPath === undefined
  return {
    id: gone ? undefined : id,
    inPath,
    name: own?.name ?? looked.data?.name ?? (gone ? undefined : id),
    mayPick: operator || accounts.length > 1,
  }
}
