// Which page an address shows. Each page is a file of its own that is loaded when it is first visited.
import { type ComponentType, lazy, type ReactNode, Suspense, useEffect } from 'react'
import { ApiError, api, whenSignedOut } from './api.ts'
import { amountsIn, setWorth } from './credits.ts'
import { Login } from './pages/login.tsx'
import { ProofDialog } from './proof.tsx'
import { useQuery } from './query.ts'
import { BASE, Link, match, navigate, useLocation } from './router.tsx'
import { lastAccount, SessionProvider, useMay, useSession } from './session.tsx'
import { Shell } from './shell.tsx'
import { LinkButton } from './ui/button.tsx'
import { Page } from './ui/page.tsx'
import { Empty, ErrorBoundary, Fault, Skeleton } from './ui/state.tsx'
import { Toasts } from './ui/toast.tsx'
import { useZone } from './zone.ts'

type Params = Record<string, string>

function page<Name extends string>(load: () => Promise<Record<Name, ComponentType<never>>>, name: Name) {
  return lazy(async () => ({ default: (await load())[name] as ComponentType<Params> }))
}

const Sso = page(() => import('./extensions/directory/sso.tsx'), 'Sso')

/** For whoever is not signed in. */
const OUTSIDE: Readonly<Record<string, ComponentType>> = {
  '/login': Login,
  '/setup': page(() => import('./pages/setup.tsx'), 'Setup'),
  '/invite': page(() => import('./pages/invite.tsx'), 'Invite'),
  '/sign-up': page(() => import('./extensions/sales/sign-up.tsx'), 'SignUpPage'),
  '/forgot': page(() => import('./pages/forgot.tsx'), 'ForgotPage'),
}

const routes: readonly [pattern: string, Page: ComponentType<Params>][] = [
  ['/a/:account', page(() => import('./pages/overview.tsx'), 'OverviewPage')],
  ['/a/:account/playground', page(() => import('./pages/playground/playground.tsx'), 'Playground')],
  ['/a/:account/playground/:tab', page(() => import('./pages/playground/playground.tsx'), 'Playground')],
  ['/a/:account/models', page(() => import('./pages/models.tsx'), 'ModelsPage')],
  ['/a/:account/models/:uid', page(() => import('./pages/model.tsx'), 'ModelPage')],
  ['/a/:account/keys', page(() => import('./pages/keys.tsx'), 'KeysPage')],
  ['/a/:account/keys/:id', page(() => import('./pages/key.tsx'), 'KeyPage')],
  [
    '/a/:account/content-logging',
    page(() => import('./extensions/guardrails/content-logging.tsx'), 'ContentLoggingPage'),
  ],
  ['/a/:account/usage', page(() => import('./pages/usage.tsx'), 'UsagePage')],
  ['/a/:account/run', page(() => import('./extensions/agents/run.tsx'), 'RunPage')],
  ['/a/:account/usage/:request', page(() => import('./pages/call.tsx'), 'CallPage')],
  ['/a/:account/jobs', page(() => import('./pages/jobs.tsx'), 'JobsPage')],
  ['/a/:account/jobs/:job', page(() => import('./pages/job.tsx'), 'JobPage')],
  ['/a/:account/batches', page(() => import('./extensions/background/batches.tsx'), 'BatchesPage')],
  ['/a/:account/batches/:batch', page(() => import('./extensions/background/batch.tsx'), 'BatchPage')],
  ['/a/:account/statement', page(() => import('./extensions/finance/statement.tsx'), 'StatementPage')],
  ['/a/:account/statement/movements', page(() => import('./pages/movements.tsx'), 'MovementsPage')],
  ['/a/:account/billing', page(() => import('./extensions/sales/billing.tsx'), 'BillingPage')],
  ['/a/:account/buy', page(() => import('./extensions/sales/buy.tsx'), 'BuyPage')],
  ['/a/:account/invoices', page(() => import('./extensions/sales/invoices.tsx'), 'InvoicesPage')],
  ['/a/:account/tokens', page(() => import('./pages/tokens.tsx'), 'TokensPage')],
  ['/a/:account/budgets', page(() => import('./pages/budgets.tsx'), 'BudgetsPage')],
  ['/a/:account/purses', page(() => import('./extensions/purses/purses.tsx'), 'PursesPage')],
  ['/a/:account/purses/:purse', page(() => import('./extensions/purses/purse.tsx'), 'PursePage')],
  ['/a/:account/purse-payments', page(() => import('./extensions/purses/payments.tsx'), 'PursePaymentsPage')],
  ['/a/:account/purse-prices', page(() => import('./extensions/purses/prices.tsx'), 'PursePricesPage')],
  ['/a/:account/teams', page(() => import('./pages/teams.tsx'), 'TeamsPage')],
  ['/a/:account/members', page(() => import('./pages/members.tsx'), 'MembersPage')],
  ['/a/:account/alerts', page(() => import('./extensions/alerts/alerts.tsx'), 'AlertsPage')],
  ['/a/:account/alerts/:tab', page(() => import('./extensions/alerts/alerts.tsx'), 'AlertsPage')],
  ['/a/:account/deliveries', page(() => import('./pages/deliveries.tsx'), 'DeliveriesPage')],
  ['/a/:account/deliveries/:delivery', page(() => import('./pages/delivery.tsx'), 'DeliveryPage')],
  ['/a/:account/agents', page(() => import('./extensions/agents/agents.tsx'), 'AgentsPage')],
  ['/a/:account/sign-ins', page(() => import('./extensions/agents/sign-ins.tsx'), 'SignInsPage')],
  ['/signed-in-at-tool', page(() => import('./extensions/agents/sign-ins.tsx'), 'SignedInAtToolPage')],
  ['/calls/:request', page(() => import('./pages/call.tsx'), 'AnyCallPage')],
  ['/try/:tab', page(async () => ({ TryPage }), 'TryPage')],
  ['/connect', page(() => import('./extensions/agents/connect.tsx'), 'ConnectPage')],
  ['/device', page(() => import('./extensions/agents/connect.tsx'), 'DevicePage')],
  ['/actions', page(() => import('./pages/actions.tsx'), 'ActionsPage')],
  ['/profile', page(() => import('./pages/profile.tsx'), 'ProfilePage')],
]

const operatorRoutes: typeof routes = [
  ['/operator/accounts', page(() => import('./pages/operator/accounts.tsx'), 'AccountsPage')],
  ['/operator/accounts/:account', page(() => import('./pages/operator/account.tsx'), 'AccountPage')],
  ['/operator/accounts/:account/:tab', page(() => import('./pages/operator/account.tsx'), 'AccountPage')],
  ['/operator/calls', page(() => import('./pages/usage.tsx'), 'CallsPage')],
  ['/operator/calls/:request', page(() => import('./pages/call.tsx'), 'OperatorCallPage')],
  ['/operator/catalog', page(() => import('./pages/operator/catalog.tsx'), 'CatalogPage')],
  ['/operator/catalog/:tab', page(() => import('./pages/operator/catalog.tsx'), 'CatalogPage')],
  ['/operator/vendors', page(() => import('./pages/operator/vendors.tsx'), 'VendorsPage')],
  ['/operator/vendors/new', page(() => import('./extensions/connect/connect.tsx'), 'ConnectPage')],
  ['/operator/finance', page(() => import('./extensions/finance/margins.tsx'), 'MarginPage')],
  ['/operator/finance/statements', page(() => import('./extensions/finance/margins.tsx'), 'StatementsPage')],
  [
    '/operator/finance/invoices',
    page(() => import('./extensions/sales/operator-invoices.tsx'), 'OperatorInvoicesPage'),
  ],
  ['/operator/payments', page(() => import('./extensions/sales/payments.tsx'), 'PaymentsPage')],
  ['/operator/payments/settings', page(() => import('./extensions/sales/payment-settings.tsx'), 'PaymentSettingsPage')],
  ['/operator/plans', page(() => import('./extensions/sales/plans.tsx'), 'PlansPage')],
  ['/operator/finance/exports', page(() => import('./extensions/finance/exports.tsx'), 'ExportsPage')],
  ['/operator/finance/exports/:export', page(() => import('./extensions/finance/exports.tsx'), 'ExportPage')],
  [
    '/operator/finance/vendor-reports',
    page(() => import('./extensions/finance/vendor-reports.tsx'), 'VendorReportsPage'),
  ],
  [
    '/operator/finance/vendor-reports/:report',
    page(() => import('./extensions/finance/vendor-reports.tsx'), 'VendorReportPage'),
  ],
  ['/operator/vendors/:vendor', page(() => import('./pages/operator/vendor.tsx'), 'VendorPage')],
  ['/operator/products', page(() => import('./extensions/products/products.tsx'), 'ProductsPage')],
  ['/operator/products/new', page(() => import('./extensions/products/product-form.tsx'), 'NewProductPage')],
  ['/operator/products/:product', page(() => import('./extensions/products/products.tsx'), 'ProductPage')],
  ['/operator/products/:product/edit', page(() => import('./extensions/products/product-form.tsx'), 'EditProductPage')],
  ['/operator/guardrails', page(() => import('./extensions/guardrails/guardrails.tsx'), 'GuardrailsPage')],
  ['/operator/guardrails/new', page(() => import('./extensions/guardrails/guardrail-form.tsx'), 'NewGuardrailPage')],
  ['/operator/guardrails/:rule', page(() => import('./extensions/guardrails/guardrail-form.tsx'), 'GuardrailPage')],
  ['/operator/tools', page(() => import('./extensions/agents/tool-servers.tsx'), 'ToolServersPage')],
  ['/operator/tools/:server', page(() => import('./extensions/agents/tool-servers.tsx'), 'ToolServerPage')],
  ['/operator/live', page(() => import('./pages/operator/live.tsx'), 'LivePage')],
  ['/operator/alerts', page(() => import('./extensions/alerts/alerts.tsx'), 'GatewayAlertsPage')],
  ['/operator/alerts/:tab', page(() => import('./extensions/alerts/alerts.tsx'), 'GatewayAlertsPage')],
  ['/operator/deliveries', page(() => import('./pages/deliveries.tsx'), 'GatewayDeliveriesPage')],
  ['/operator/deliveries/:delivery', page(() => import('./pages/delivery.tsx'), 'GatewayDeliveryPage')],
  ['/operator/ledger', page(() => import('./extensions/verify/ledger.tsx'), 'LedgerPage')],
  ['/operator/audit', page(() => import('./pages/operator/audit.tsx'), 'AuditPage')],
  ['/operator/tokens', page(() => import('./pages/tokens.tsx'), 'OperatorTokensPage')],
  ['/operator/operators', page(() => import('./pages/operator/operators.tsx'), 'OperatorsPage')],
  ['/operator/login', page(() => import('./extensions/directory/login-providers.tsx'), 'LoginProvidersPage')],
  ['/operator/home', page(() => import('./pages/operator/home.tsx'), 'HomePage')],
  ['/operator/sign-up', page(() => import('./extensions/sales/sign-up-settings.tsx'), 'SignUpSettingsPage')],
  ['/operator/branding', page(() => import('./extensions/sales/branding.tsx'), 'BrandingPage')],
  ['/operator/mails', page(() => import('./extensions/sales/branding.tsx'), 'MailsPage')],
  ['/operator/system', page(() => import('./pages/operator/system.tsx'), 'SystemPage')],
]

const loginFrom = (path: string) => navigate(`/login?next=${encodeURIComponent(path)}`, { replace: true })

export function App() {
  const { path } = useLocation()
  const Outside = path.startsWith('/sso/') ? Sso : OUTSIDE[path]
  const View = Outside ?? SignedIn
  return (
    <>
      <ErrorBoundary key={Outside ? path : 'inside'}>
        <Suspense fallback={<LoadingScreen />}>
          <View />
        </Suspense>
      </ErrorBoundary>
      <ProofDialog />
      <Toasts />
    </>
  )
}

function SignedIn() {
  const session = useQuery('session', api.session)
  useEffect(
    () => whenSignedOut(() => loginFrom(window.location.pathname.slice(BASE.length) + window.location.search)),
    [],
  )
  if (session.data) {
    setWorth(session.data.worth)
    return (
      <SessionProvider session={session.data}>
        <SignedInPages />
      </SessionProvider>
    )
  }
  if (session.error && !(session.error instanceof ApiError && session.error.status === 401))
    return (
      <main className="signed-out">
        <Fault error={session.error} retry={session.reload} />
      </main>
    )
  return <LoadingScreen />
}

function SignedInPages() {
  const { path } = useLocation()
  const { user } = useSession()
  const [zone, amounts] = [useZone(), amountsIn.use()]
  const all = user.role !== 'user' ? [...routes, ...operatorRoutes] : routes
  let found: ReactNode
  for (const [pattern, View] of all) {
    const params = match(pattern, path)
    // A change of account mounts the page anew: nothing of one account is shown under another's name. So does another
    // zone, because every time on the page is written differently.
    if (params)
      found = (
        <View
          key={`${pattern}:${params.account ?? ''}:${params.uid ?? ''}:${params.id ?? ''}:${zone}:${amounts}`}
          {...params}
        />
      )
    if (found) break
  }
  return (
    <Shell>
      <ErrorBoundary key={path}>
        <Suspense
          fallback={
            <div className="page">
              <Skeleton lines={3} like="page" />
            </div>
          }
        >
          {found ?? (path === '/' ? <Home /> : <NotFound />)}
        </Suspense>
      </ErrorBoundary>
    </Shell>
  )
}

/** The start page redirects to the account that was open last, or to the operator's list. */
function Home() {
  const { user, accounts } = useSession()
  const may = useMay()
  const last = lastAccount()
  const known = accounts.find((account) => account.id === last) ?? accounts[0]
  const target = known
    ? `/a/${encodeURIComponent(known.id)}`
    : user.role === 'user'
      ? undefined
      : may('home:read')
        ? '/operator/home'
        : '/operator/accounts'
  useEffect(() => {
    if (target) navigate(target, { replace: true })
  }, [target])
  if (target) return null
  return (
    <Page title="Welcome">
      <Empty icon="members" title="You are not a member of any account">
        <p>Ask the owner of an account for an invitation link.</p>
      </Empty>
    </Page>
  )
}

/** Where the documentation leads: the same example in the playground of the account that was open last. */
function TryPage({ tab }: Params) {
  const { accounts } = useSession()
  const { query } = useLocation()
  const account = lastAccount() ?? accounts[0]?.id
  const target = account && `/a/${encodeURIComponent(account)}/playground/${tab}?${query}`
  useEffect(() => {
    if (target) navigate(target, { replace: true })
  }, [target])
  return target ? null : <TryAs to={(id) => `/a/${encodeURIComponent(id)}/playground/${tab}?${query}`} />
}

/** An operator who has chosen no account yet: the only one there is, or one of the list. */
function TryAs({ to }: { to: (account: string) => string }) {
  const accounts = useQuery('accounts/try', (signal) => api.accounts({ limit: 20 }, signal))
  const [first, second] = accounts.data?.items ?? []
  const only = first && !second ? to(first.id) : undefined
  useEffect(() => {
    if (only) navigate(only, { replace: true })
  }, [only])
  return (
    <Page title="Playground">
      <Empty icon="play" title="Choose an account first">
        <p>The playground runs on an account’s credits.</p>
        {accounts.data?.items.map(({ id, name }) => (
          <p key={id}>
            <Link to={to(id)}>{name}</Link>
          </p>
        ))}
      </Empty>
    </Page>
  )
}

function NotFound() {
  return (
    <Page title="Not found">
      <Empty
        icon="search"
        title="There is no page at this address"
        action={<LinkButton to="/">Back to the overview</LinkButton>}
      >
        <p>It may have moved, or your login may not see it.</p>
      </Empty>
    </Page>
  )
}

function LoadingScreen() {
  return (
    <div className="waiting" role="status" aria-label="Loading">
      <span className="spinner" aria-hidden="true" />
    </div>
  )
}
