// The shapes that the console API speaks, as the server's views say them: types, and the table of kinds and units.
// Amounts are decimal strings of credits, times are ISO 8601.
import type { KeyView } from '../../src/admission/views.ts'
import type { CatalogInput } from '../../src/catalog/document.ts'
import type {} from '../../src/extensions/agents/tools/section.ts'
import type { LoginProvider } from '../../src/extensions/directory/views.ts'
import type {} from '../../src/extensions/guardrails/rules.ts'
import type {} from '../../src/extensions/products/product.ts'
import type {} from '../../src/extensions/sales/offers.ts'
import type { LoginStep } from '../../src/identity/views.ts'
import type { JobView } from '../../src/jobs/views.ts'
import type { BudgetView, CallView, UsageView } from '../../src/ledger/views.ts'
import type { KindName as ModelType } from '../../src/meter/kind.ts'
import type { LimitsInput } from '../../src/meter/limits.ts'
import type { PublicCatalog } from '../../src/operator/views.ts'

export type {
  ContentRules,
  ContentView as Content,
  KeyView as Key,
  NewKey,
  TeamView as Team,
} from '../../src/admission/views.ts'
export type { QuoteView as Quote } from '../../src/api/views.ts'
export type { CatalogInput as CatalogDocument } from '../../src/catalog/document.ts'
export type {
  Applied,
  CheckView as CatalogCheck,
  CurrentView as Catalog,
  VendorCheckView as VendorCheck,
  VersionDocumentView as CatalogVersionDocument,
  VersionView as CatalogVersion,
} from '../../src/catalog/views.ts'
export type { AuditView as AuditRow } from '../../src/database/audit.ts'
export type { AgentSetup } from '../../src/extensions/agents/setup/programs.ts'
export type {
  AgentSettings,
  BudgetProposal,
  ConsentView as Connect,
  DeviceView as Device,
  ForeignTool,
  Program,
  RunView as Run,
  ToolConnectionView as ToolSignIn,
  ToolServerView as ToolServer,
} from '../../src/extensions/agents/views.ts'
export type { AlertRules } from '../../src/extensions/alerts/rules.ts'
export type {
  AlertPage,
  AlertSettings,
  AlertSettingsInput,
  AlertView as Alert,
  Receiver,
} from '../../src/extensions/alerts/views.ts'
export type {
  BatchDetail,
  BatchLineView as BatchLine,
  BatchView as Batch,
  FileCheck,
} from '../../src/extensions/background/views.ts'
export type {
  BillingDetailsView as BillingDetails,
  InvoiceSettings,
  InvoiceView as Invoice,
  Issuer,
} from '../../src/extensions/billing/invoices/views.ts'
export type { ReconciliationView as Reconciliation } from '../../src/extensions/billing/payments/views.ts'
export type { ConnectCheckView as ConnectCheck, PresetView as Preset } from '../../src/extensions/connect/views.ts'
export type {
  DomainView as Domain,
  LoginOptions,
  LoginProvider,
  PasskeyOptions,
  ProviderTest,
  SsoStep,
} from '../../src/extensions/directory/views.ts'
export type { AuditExportInput, AuditExportView } from '../../src/extensions/finance/audit/views.ts'
export type {
  MarginGrouping,
  MarginPage as Margins,
  MarginRow,
  UnbilledRow,
} from '../../src/extensions/finance/margins/views.ts'
export type { MonthlyStatement, StatementSummary } from '../../src/extensions/finance/statements/views.ts'
export type {
  ComparedCall,
  ComparedLine,
  ComparedPage,
  ExportCustomer,
  ExportTest,
  ExportView as Export,
  ReportView as VendorReport,
} from '../../src/extensions/finance/views.ts'
export type { SampleView as RedactionSample } from '../../src/extensions/guardrails/views.ts'
export type { PriceComparisonView as PriceComparison } from '../../src/extensions/prices/views.ts'
export type {
  ImportedView as ImportedDocument,
  ProductCheckView as ProductCheck,
  ProductPresetView as ProductPreset,
} from '../../src/extensions/products/views.ts'
export type {
  EventsView as PurseEvents,
  NewSessionView as NewPurseSession,
  PageLinkView as PursePageLink,
  PaymentsView as PursePayments,
  PricesView as PursePrices,
  PurseMargins,
  PurseMovement,
  PurseStatement,
  PurseView as Purse,
  SessionView as PurseSession,
  TopUpView as PurseTopUp,
} from '../../src/extensions/purses/views.ts'
export type {
  MailPreview,
  SignUpInvite,
  SignUpLink,
  SignUpSettingsView as SignUpSettings,
  SignUpView as SignUp,
} from '../../src/extensions/sales/sign-up/views.ts'
export type {
  AccountPlanView as AccountPlan,
  CheckoutView as Checkout,
  ChosenPlanView as ChosenPlan,
  CodeBatchView as CodeBatch,
  NewCodeBatch,
  PaymentSettingsInput,
  PaymentSettingsView as PaymentSettings,
  PaymentView as Payment,
  PlanOffer,
  RedeemedView as Redeemed,
  SalesView as Sales,
} from '../../src/extensions/sales/views.ts'
export type {
  VerificationRun as LedgerCheck,
  VerificationState as LedgerChecks,
} from '../../src/extensions/verify/views.ts'
export type { BrandingView as Branding, PublicBranding } from '../../src/identity/branding/views.ts'
export type { AccountRole, AnyRole, OperatorRole, Permission } from '../../src/identity/roles.ts'
export type {
  EndedView as Ended,
  InviteView as Invite,
  LinkView as Link,
  LoginPolicy,
  LoginStep,
  MemberView as Member,
  NewToken,
  OperatorView as Operator,
  PendingInvite,
  RecoveryCodes,
  SavedView,
  SecurityView as Security,
  SessionView as SessionRow,
  SetupView as Setup,
  TokenView as Token,
  TotpSecret,
  WhoView as Session,
} from '../../src/identity/views.ts'
export type {
  DeliveryDetail,
  DeliveryPage,
  DeliveryView as Delivery,
  JobView as Job,
  ListedJobView as ListedJob,
} from '../../src/jobs/views.ts'
export type { Page } from '../../src/kernel/view.ts'
export type {
  AccountView as Account,
  AttemptView as Attempt,
  BalanceView as Balance,
  BudgetValueView as BudgetValue,
  BudgetView as Budget,
  ClientSum,
  LedgerView as LedgerRow,
  LotView as Lot,
  Overview,
  RouteFigures,
  UsageDetail,
  UsageView as UsageRow,
  WebhookSecretView as WebhookSecret,
} from '../../src/ledger/views.ts'
export {
  KIND_NAMES,
  type KindName as ModelType,
  kindRow,
  TEXT_PROTOCOLS,
  UNIT_NAMES,
  type Unit as PriceUnit,
  unitRow,
} from '../../src/meter/kind.ts'
export type { LimitName, LimitsInput, LimitsView as Limits } from '../../src/meter/limits.ts'
export type {
  ActionView as Action,
  ByokKeyStored,
  ByokKeyView as ByokKey,
  LiveCallView as LiveCall,
  LivePage as Live,
  PublicCatalog,
  SystemView as System,
  VendorCredentialView as VendorCredential,
  VendorView as Vendor,
} from '../../src/operator/views.ts'
export type {
  BillingView as Billing,
  CreditWorth,
  FillView as Fill,
  Found,
  HomeFigures,
  KeyFigures,
  LabelSum,
  LabelSums,
  UsageLatency,
  UsageSums,
  VendorError,
} from '../../src/reports/views.ts'
export type {
  VendorHistory,
  VendorTest,
} from '../../src/routing/views.ts'

/** The account is named where calls of all accounts are listed. */
export type ListedCall = UsageView & Partial<Pick<CallView, 'account' | 'accountName'>>

export type KeyInput = Pick<KeyView, 'name'> &
  Partial<
    Pick<
      KeyView,
      | 'models'
      | 'endpoints'
      | 'requiredLabels'
      | 'expiresAt'
      | 'ipRanges'
      | 'responseCache'
      | 'routing'
      | 'teamId'
      | 'memberId'
    >
  > & { limits?: LimitsInput; test?: boolean }

/** `max` is an amount of credits, or a whole number. */
export type BudgetInput = Pick<
  BudgetView,
  'name' | 'scope' | 'value' | 'unit' | 'span' | 'windowSeconds' | 'max' | 'hard' | 'alertPercent'
>

/** What is known of a vendor before it is in the catalog. */
export interface ConnectPlace {
  preset?: string
  login?: string
  vendor?: string
  baseUrl?: string
  variables?: Record<string, string>
  formats?: string[]
  credential?: { name?: string; value?: string }
}

export type ProductOperation = NonNullable<CatalogInput['products']>[string]['operations'][string]
/** A product as it is to be; one of this id that is there is replaced. */
export interface ProductInput {
  id: string
  title?: string
  description: string
  entries: Record<string, ProductOperation>
  prices: Record<string, { rates: Record<string, string>; cacheSeconds?: number }>
  vendor: { name?: string; baseUrl?: string; auth?: unknown; credential: { name?: string; value?: string } }
  note?: string
}

/** What is to change of a vendor. */
export interface VendorChange {
  name?: string
  format?: string
  entry?: Record<string, unknown>
  credential?: { value: string }
  note?: string
}

export interface ConnectInput extends ConnectPlace {
  models?: { model: string; uid?: string; type?: ModelType; cost?: Pricing; pricing?: Pricing }[]
  markup?: string
  belowCost?: boolean
  note?: string
}

/** Of the public API, which the console calls for an account. */
export interface StoredFile {
  id: string
  filename: string
  bytes: number
  purpose: string
  /** In seconds. */
  created_at: number
  expires_at: number
}

export type JobStatus = JobView['status']
export type GuardrailRule = NonNullable<CatalogInput['guardrails']>[string]
export type CatalogRouting = NonNullable<CatalogInput['models'][string]['routing']>
export type CatalogRoute = CatalogInput['models'][string]['routes'][number]
export type CatalogModel = CatalogInput['models'][string]
export type Pricing = CatalogModel['pricing']
export type PriceTier = Pricing['tiers'][number]
export type PublicModel = PublicCatalog['models'][number]
export type PublicEndpoint = PublicCatalog['endpoints'][number]
export type Door = PublicModel['clientFormats'][number]
export type Param = PublicEndpoint['params'][number]

export type ProofWay = LoginStep['needs'][number]
/** Without what the server adds; the secret only if it is new. */
export type LoginProviderInput = Omit<
  LoginProvider,
  'id' | 'hasSecret' | 'redirectUri' | 'backchannelLogoutUri' | 'updatedAt'
> & { secret?: string }

export interface TokenInput {
  readonly name: string
  readonly scopes: readonly string[]
  readonly expiresAt: string | null
  readonly ipRanges: readonly string[] | null
}
