// The frame around every page: navigation at the side, on phones at the bottom and in a sheet.

import { type ReactNode, useEffect, useRef, useState } from 'react'
import { AccountPicker } from './account-picker.tsx'
import { BalanceBanner, MissingBanner } from './banner.tsx'
import { Bell } from './bell.tsx'
import { useBranding } from './branding.ts'
import { Finder, useFinder } from './finder.tsx'
import {
  type CurrentAccount,
  type Navigation,
  type Place,
  type Section,
  useCurrentAccount,
  useNavigation,
} from './navigation.ts'
import { ROLE_NAMES } from './pages/roles.tsx'
import { Link, useLocation } from './router.tsx'
import { signOut, useSession } from './session.tsx'
import { setTheme, type Theme, useTheme } from './theme.ts'
import { Brand, BrandMark } from './ui/brand.tsx'
import { IconButton } from './ui/button.tsx'
import { Dialog } from './ui/dialog.tsx'
import { Segments } from './ui/field.tsx'
import { Icon, type IconName } from './ui/icon.tsx'
import { SectionTabs } from './ui/page.tsx'

const DOCK_MAX = 4

export function Shell({ children }: { children: ReactNode }) {
  const { path } = useLocation()
  const [menu, setMenu] = useState(false)
  const [picking, setPicking] = useState(false)
  const main = useRef<HTMLElement>(null)
  const firstPath = useRef(path)
  const account = useCurrentAccount(path)
  const navigation = useNavigation(path, account.id)
  const [finding, setFinding] = useFinder()

  // After following a link the focus goes to the new page, so that a screen reader reads it and Tab starts there.
  useEffect(() => {
    if (firstPath.current === path) return
    firstPath.current = path
    setMenu(false)
    const heading = main.current?.querySelector<HTMLElement>('h1')
    ;(heading ?? main.current)?.focus({ preventScroll: true })
  }, [path])

  const current = (section: Section) => (section === navigation.current ? ('page' as const) : undefined)
  const choose = () => {
    setMenu(false)
    setPicking(true)
  }
  const menuItems = (
    <SideNav
      account={account}
      navigation={navigation}
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
            <Brand />
          </Link>
          <Bell account={account.id} />
        </div>
        {menuItems}
      </aside>
      <TopBar
        account={account}
        title={navigation.place === 'operator' ? 'Operator' : (account.name ?? 'Choose an account')}
        onPick={choose}
        onFind={() => setFinding(true)}
        onMenu={() => setMenu(true)}
      />
      <main id="main" className="main" ref={main} tabIndex={-1}>
        <MissingBanner />
        {account.inPath ? <BalanceBanner account={account.inPath} /> : null}
        <SectionTabs value={navigation.current}>{children}</SectionTabs>
      </main>
      <nav className="dock" aria-label="Main">
        {dockOf(navigation).map((section) => (
          <Link key={section.label} to={section.pages[0].to} className="dock-link" aria-current={current(section)}>
            <Icon name={section.icon} size={20} />
            {section.label}
          </Link>
        ))}
        <button type="button" className="dock-link" onClick={() => setMenu(true)}>
          <Icon name="more" size={20} />
          More
        </button>
      </nav>
      {menu ? (
        <Dialog title="Menu" sheet onClose={() => setMenu(false)}>
          <div className="side">{menuItems}</div>
        </Dialog>
      ) : null}
      {finding ? (
        <Finder account={account.id} sections={navigation.sections} onClose={() => setFinding(false)} />
      ) : null}
      {picking ? <AccountPicker onClose={() => setPicking(false)} current={account.id} /> : null}
    </div>
  )
}

/** On phones. */
function TopBar(props: {
  account: CurrentAccount
  title: string
  onPick: () => void
  onFind: () => void
  onMenu: () => void
}) {
  const { account } = props
  return (
    <header className="top">
      <Link to="/" className="top-mark" aria-label={`${useBranding()?.name ?? ''}, start`}>
        <BrandMark size={28} />
      </Link>
      <button type="button" className="top-account" onClick={props.onPick} disabled={!account.mayPick}>
        <span>{props.title}</span>
        {account.mayPick ? <Icon name="down" size={14} /> : null}
      </button>
      <Bell account={account.id} />
      <IconButton icon="search" label="Find" onClick={props.onFind} />
      <IconButton icon="menu" label="Menu" onClick={props.onMenu} />
    </header>
  )
}

/** On phones: the sections that people open most. */
function dockOf({ place, sections }: Navigation): readonly Section[] {
  const often = sections[place].filter(({ label }) => /^(Overview|Playground|Keys|Usage)$/.test(label))
  return often.length ? often : sections[place].slice(0, DOCK_MAX)
}

function SideNav({
  account,
  navigation,
  current,
  onPick,
  onFind,
}: {
  account: CurrentAccount
  navigation: Navigation
  current: (section: Section) => 'page' | undefined
  onPick: (() => void) | undefined
  onFind: () => void
}) {
  const { path } = useLocation()
  const { user } = useSession()
  const theme = useTheme()
  const { place, sections } = navigation
  return (
    <>
      <div className="side-scroll">
        {sections.operator.length ? <PlaceSwitch {...navigation} /> : null}
        <button type="button" className="finder-open" onClick={onFind}>
          <Icon name="search" size={16} />
          <span>Find</span>
          <kbd>{/Mac|iP/.test(navigator.platform) ? '⌘ K' : 'Ctrl K'}</kbd>
        </button>
        {place === 'account' && (onPick || account.name) ? (
          <button type="button" className="switcher" onClick={onPick} disabled={!onPick}>
            <span className="switcher-label">Account</span>
            <span className="switcher-name">{account.name ?? 'Choose one'}</span>
            {onPick ? <Icon name="swap" size={16} /> : null}
          </button>
        ) : null}
        <nav className="nav-group" aria-label={place === 'operator' ? 'Operator' : (account.name ?? 'Account')}>
          <ul>
            {sections[place].map((section) => (
              <li key={section.label}>
                <Link to={section.pages[0].to} className="nav-link" aria-current={current(section)}>
                  <Icon name={section.icon} />
                  {section.label}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
      </div>
      <div className="side-foot">
        <Link to="/profile" className="who" aria-current={path === '/profile' ? 'page' : undefined}>
          <span className="who-face" aria-hidden="true">
            {user.email.slice(0, 1)}
          </span>
          <span className="who-text">
            <span>{user.email}</span>
            <span className="who-role">{user.role === 'user' ? 'Profile' : ROLE_NAMES[user.role]}</span>
          </span>
        </Link>
        <div className="side-tools">
          <ThemeSwitch theme={theme} />
          <span>
            <a href="/docs" className="icon-button" aria-label="Documentation" title="Documentation">
              <Icon name="docs" />
            </a>
            <IconButton icon="leave" label="Sign out" onClick={() => void signOut()} />
          </span>
        </div>
      </div>
    </>
  )
}

/** Operators have two places: the pages of an account, and those of the gateway. */
function PlaceSwitch({ place, sections }: Navigation) {
  const link = (to: Place, label: string, start: string) => (
    <Link to={sections[to][0]?.pages[0].to ?? start} aria-current={place === to ? 'true' : undefined}>
      {label}
    </Link>
  )
  return (
    <nav className="place-switch" aria-label="Place">
      {link('account', 'Account', '/operator/accounts')}
      {link('operator', 'Operator', '/operator/home')}
    </nav>
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
