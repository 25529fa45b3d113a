// Selling credits: payments, plans, codes, automatic top-up and invoices; how people sign up and delete
// their login, and how the gateway presents itself to them.
import type { WebServer } from '../../api/server/server.ts'
import type { Config } from '../../config.ts'
import { defineExtension } from '../../extension.ts'
import type { Attempts } from '../../identity/attempts.ts'
import type { Branding } from '../../identity/branding/branding.ts'
import type { Secrets } from '../../kernel/secret.ts'
import { withCommands } from '../../operator/command.ts'
import type { Billing } from '../../reports/billing.ts'
import { createCodes } from './codes.ts'
import { SALES_COMMANDS } from './commands.ts'
import { createInvoices } from './invoices/invoices.ts'
import { invoiceMonths } from './invoices/monthly.ts'
import { invoiceResources } from './invoices/resources.ts'
import { salesSection } from './offers.ts'
import { openSales, type SellingOptions } from './open.ts'
import { paymentResources, planResources } from './resources.ts'
import { type ChallengeDeps, createChallenge } from './sign-up/challenge.ts'
import { ownDeletionResources } from './sign-up/deletion-resources.ts'
import { createOwnDeletion, type DeletionDeps } from './sign-up/own-deletion.ts'
import { signUpResources, signUpVisitorResources } from './sign-up/resources.ts'
import { createSignUp, type SignUpDeps } from './sign-up/sign-up.ts'
import { mountPaymentWebhooks } from './webhooks.ts'

type Core = Omit<SellingOptions, 'invoices' | 'stripeUrl'> &
  Omit<SignUpDeps, 'mailboxKey' | 'challenge'> &
  ChallengeDeps &
  DeletionDeps & {
    readonly config: Pick<Config, 'TOLLGATE_STRIPE_URL'>
    readonly branding: Branding
    readonly billing: Pick<Billing, 'worthAt'>
    readonly attempts: Attempts
    readonly secrets: Secrets
  }

/** How soon a card is charged when an account with automatic top-up is low. */
const TOP_UP_EVERY_MS = 5_000
const RENEW_EVERY_MS = 60_000
const RECONCILE_EVERY_MS = 300_000
const MAINTAIN_EVERY_MS = 3_600_000

export const sales = defineExtension({
  name: 'sales',
  catalog: salesSection,
  open(core: Core) {
    const { config, secrets } = core
    const signUp = createSignUp({ ...core, mailboxKey: secrets.key('mailbox'), challenge: createChallenge(core) })
    const invoices = createInvoices(core)
    const codes = createCodes(core)
    const sold = openSales({ ...core, invoices, stripeUrl: config.TOLLGATE_STRIPE_URL })
    return { signUp, invoices, codes, sales: sold, ownDeletion: createOwnDeletion(core) }
  },
  resources: (all) =>
    withCommands(
      [...signUpResources(all), ...invoiceResources(all), ...paymentResources(all), ...planResources(all)],
      SALES_COMMANDS,
    ),
  personal: (all) => [...signUpVisitorResources(all), ...ownDeletionResources(all)],
  endpoints: (all, { app }: { readonly app: WebServer }) => mountPaymentWebhooks(app, all.sales.payments),
  work: ({ sales: { payments, plans, topUps, reconciliations }, invoices, ...core }) => [
    { everyMs: TOP_UP_EVERY_MS, run: () => topUps.look() },
    { everyMs: RENEW_EVERY_MS, run: () => plans.renew() },
    { everyMs: RECONCILE_EVERY_MS, run: () => reconciliations.tick() },
    {
      everyMs: MAINTAIN_EVERY_MS,
      async run() {
        await invoiceMonths({ ...core, invoices })
        await invoices.makeFiles()
        await payments.prune()
      },
    },
  ],
  async offered({ catalog, sales: { payments }, codes }) {
    const { sales: sold } = catalog.current.document
    const isSold = sold !== undefined && (sold.amounts !== null || sold.packs.length > 0)
    const salesEnabled = isSold && (await payments.provider()) !== undefined
    return { salesEnabled, codesEnabled: await codes.areOffered() }
  },
})
