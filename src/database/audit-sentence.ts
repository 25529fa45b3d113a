// An audit row in one sentence: who, from where, by which token, did what, and what it was before. The operator API
// makes it, and the console, the command line and the export show what stands here. A row may be years old, so nothing
// is taken for granted of its detail.

type Detail = Readonly<Record<string, unknown>>

/** What a sentence is made of. */
interface AuditFacts {
  readonly actor: string
  readonly action: string
  readonly object: string
  readonly ip: string | null
  /** By which token of the actor. */
  readonly token: string | null
  readonly detail: Detail
  readonly before: Detail
  readonly after: Detail
}

type Say = (about: Words) => string

interface Words {
  /** The object's id, with its name if the row has one. */
  readonly it: string
  /** The first of these fields that the row has. */
  readonly detail: (...names: readonly string[]) => string
}

const changedLimits: Say = () => 'changed the limits of the whole gateway'
const of = (what: string): Say => {
  return ({ it }) => `${what} ${it}`
}

/** What was done, by the action's name, to follow the actor's name. An action without a line here does not compile. */
const DEEDS = {
  'account.arrive': of('received, from another database, the account'),
  'account.billing_details': of('changed the billing details of the account'),
  'account.change': of('changed the account'),
  'account.close': of('closed the account'),
  'plan.start': of('started a plan of the account'),
  'plan.renew': of('renewed the plan of the account'),
  'plan.change': of('changed the plan of the account'),
  'plan.end': of('ended the plan of the account'),
  'code.redeem': of('redeemed a code for the account'),
  'codes.create': of('made a batch of codes'),
  'codes.end': of('ended a batch of codes'),
  'account.create': of('created the account'),
  'account.credit': ({ it, detail }) => `posted ${detail('amount')} credits to the account ${it}`,
  'account.move': ({ it, detail }) => `moved the account ${it} to ${detail('to')}`,
  'account.reopen': of('reopened the account'),
  'account.suspend': of('suspended the account'),
  'agent-settings.put': of('set what agents may do in'),
  'agent-settings.remove': of('removed the settings of the agents of'),
  'alert.settings': of('changed the alert settings of'),
  'audit.export': () => 'changed where the audit log is exported to',
  'batch.cancel': of('cancelled the batch'),
  'budget.change': of('changed the budget'),
  'budget.create': of('made the budget'),
  'budget.end': of('ended the budget'),
  'budget.propose': ({ it, detail }) => `proposed a maximum of ${detail('max')} for the budget ${it}`,
  'budget.value': ({ it, detail }) => `gave ${detail('value')} ${detail('max')} of the budget ${it}`,
  'byok-key.change': ({ it, detail }) => `changed the BYOK key for ${detail('vendor')} of the account ${it}`,
  'byok-key.remove': ({ it, detail }) => `removed the BYOK key for ${detail('vendor')} of the account ${it}`,
  'byok-key.store': ({ it, detail }) => `stored a BYOK key for ${detail('vendor')} of the account ${it}`,
  'catalog.apply': ({ it }) => `applied ${it}`,
  'catalog.model': ({ it }) => `changed a model, which made ${it}`,
  'catalog.rollback': ({ it }) => `rolled the catalog back, which made ${it}`,
  'content.off': of('switched content logging off for'),
  'content.on': of('switched content logging on for'),
  'content.read': of('read the recorded content of the call'),
  'content.remove': of('deleted the recorded content of the call'),
  'credential.remove': of('removed the vendor credential'),
  'credential.store': of('stored the vendor credential'),
  'delivery.repeat': of('sent the delivery again:'),
  'export.backfill': ({ it, detail }) =>
    `sends calls from ${detail('from')} to ${detail('to')} again by the export ${it}`,
  'export.change': of('changed the export'),
  'export.create': ({ it, detail }) => `created the export ${it} to ${detail('kind')}`,
  'export.customer': ({ it, detail }) => `changed the customer of the account ${detail('account')} in the export ${it}`,
  'export.pause': of('paused the export'),
  'export.remove': of('removed the export'),
  'export.resume': of('resumed the export'),
  'factor.add': of('added a second factor to the login of'),
  'factor.codes': of('made new recovery codes for'),
  'factor.remove': of('removed a second factor from the login of'),
  'factor.reset': of('removed all second factors, and ended all sessions, of'),
  'identity.connect': ({ it, detail }) => `connected a login at ${detail('provider')} to ${it}`,
  'identity.disconnect': of('disconnected a login at a provider from'),
  'invite.withdraw': ({ it, detail }) => `withdrew the invitation of ${detail('email')} to ${it}`,
  'key.change': of('changed the key'),
  'invoice.issue': ({ it, detail }) => `issued the invoice ${detail('number')} of the account ${it}`,
  'key.create': ({ it, detail }) => `created the key ${it} of the account ${detail('account')}`,
  'key.import': ({ it, detail }) => `imported the key ${it} into the account ${detail('account')}`,
  'key.revoke': of('revoked the key'),
  'key.rotate': ({ it, detail }) => `rotated the key ${it}, which ${detail('replacedBy')} replaces`,
  'login.policy': () => 'changed who needs a second factor',
  'member.invite': ({ it, detail }) => `invited ${detail('email')} to the account ${it} as ${detail('role')}`,
  'domain.prove': ({ it, detail }) => `proved the domain ${detail('domain')} of the account ${it}`,
  'domain.remove': ({ it, detail }) => `removed the domain ${detail('domain')} of the account ${it}`,
  'member.join': ({ it, detail }) => `joined the account ${it} as ${detail('role')}`,
  'member.remove': ({ it, detail }) => `removed the member ${detail('email', 'person')} from the account ${it}`,
  'member.role': ({ it, detail }) => `changed the role of ${detail('email', 'person')} in the account ${it}`,
  'operator.invite': ({ detail }) => `invited ${detail('email')} to run the gateway as ${detail('role')}`,
  'operator.join': ({ detail }) => `joined the gateway as ${detail('role')}`,
  'operator.remove': of('ended the operator rights of'),
  'operator.role': of('changed the operator role of'),
  'payment.accept': ({ it, detail }) => `accepted the quarantined payment ${detail('payment')} for the account ${it}`,
  'payment.back': ({ it, detail }) => `took ${detail('amount')} credits of the payment ${detail('payment')} from ${it}`,
  'payment.change': of('reported a change of the payment'),
  'payment.dismiss': of('dismissed the quarantined payment'),
  'payment.paid': ({ it, detail }) =>
    `granted ${detail('amount')} credits for the payment ${detail('payment')} to ${it}`,
  'payment.refund': of('refunded the payment'),
  'payment.settings': () => 'changed the payment settings',
  'payment.top-up': of('changed the automatic top-up of'),
  'person.create': ({ it, detail }) => `came for the first time, by ${detail('provider')}, as ${it}`,
  'person.delete': () => 'deleted their own login',
  'person.login-link': of('made a login link for'),
  'person.password': of('set a new password for'),
  'person.email': of('changed the email address of'),
  'person.others': () => 'ended their other logins and their programs',
  'person.prove': of('proved the address, which ended everything made before, of'),
  'person.reset': of('made a password link for'),
  'provider.put': of('stored the login provider'),
  'provider.remove': of('removed the login provider'),
  'purse.change': of('changed the purse'),
  'purse.create': of('made the purse'),
  'purse.grant': ({ it, detail }) => `posted ${detail('amount')} credits (${detail('kind')}) to the purse ${it}`,
  'purse-events.set': of('set where the events of purses are sent for the account'),
  'purse-prices.set': of('set the prices for customers of the account'),
  'purse-session.revoke': ({ it, detail }) => `revoked the session token ${it} of the purse ${detail('purse')}`,
  'purse-payments.change': of('changed how customers pay into the purses of'),
  'purse-topup.refund': ({ it, detail }) => `refunded ${detail('amount')} of the top-up ${it}`,
  'scim.group.put': of('stored, by the directory, the group'),
  'scim.group.delete': of('removed, by the directory, the group'),
  'scim.user.delete': of('removed, by the directory, the person'),
  'session.end': of('ended the session'),
  'session.factor': () => 'gave the second factor of their login',
  'session.logout': ({ it, detail }) => `ended ${detail('sessions')} sessions of ${it}, who signed out there`,
  'session.prove': () => 'confirmed again who they are',
  'session.refuse': of('was rejected at the login of'),
  'session.start': () => 'logged in',
  'setup.finish': () => 'set up the gateway and became its first operator',
  'setup.renew': () => 'made a new set-up link',
  'sign-up.finish': ({ detail }) => `signed up and opened the account ${detail('account')}`,
  'sign-up.invite': ({ detail }) => `invited ${detail('email')} to sign up`,
  'system.billing': () => 'changed the worth of a credit or the contact',
  'system.invoices': () => 'changed the issuer of invoices or whether months are invoiced',
  'system.branding': () => 'changed the branding',
  'system.ledgers': () => 'added, changed or removed a ledger',
  'system.limits': changedLimits,
  'system.sign-up': () => 'changed the settings of sign-up',
  'tool-connection.store': ({ it, detail }) => `signed in at the tool server ${detail('server')} for ${it}`,
  'tool-connection.remove': ({ it, detail }) => `ended the sign-in at the tool server ${detail('server')} for ${it}`,
  'tool-server.look': of('found that tools changed at the tool server'),
  'token.create': ({ it, detail }) => `created the token ${it} (${detail('scopes')})`,
  'token.revoke': of('revoked the token'),
  'vendor-report.create': ({ detail }) =>
    `compared the report of ${detail('vendor')} from ${detail('from')} to ${detail('to')}`,
  'vendor-report.remove': ({ detail }) => `removed a report of ${detail('vendor')}`,
  'team.change': of('changed the team'),
  'team.create': of('made the team'),
  'team.members': of('chose the members of the team'),
  'team.remove': of('removed the team'),
  'vendor.test': ({ it, detail }) => `tested the vendor ${it} at ${detail('baseUrl')}`,
} as const satisfies Record<string, Say>

export type AuditAction = keyof typeof DEEDS

/**
 * Actions that say nothing of before and after, each with its reason. The compiler asks for both of every other one.
 */
export const EVENTS = {
  'account.arrive': 'the account comes as it was',
  'account.billing_details':
    'names and addresses do not go into a log from which nothing is deleted; the row names the fields',
  'account.credit': 'the ledger has the transfer, and the balance after it',
  'account.move': 'the account goes as it is',
  'batch.cancel': 'the batch ends later; its lines that run are finished',
  'catalog.apply': 'the row has its changes as sentences, and the versions have the documents',
  'catalog.model': 'the row has its changes as sentences, and the versions have the documents',
  'catalog.rollback': 'the row has its changes as sentences, and the versions have the documents',
  'code.redeem': 'the ledger has the transfer',
  'codes.create': 'codes are secrets',
  'invoice.issue': 'it is new, and never changes',
  'content.read': 'nothing changes',
  'content.remove': 'what was deleted must not stay in the log',
  'delivery.repeat': 'the same message is sent once more',
  'export.backfill': 'calls are sent; the row says of which days',
  'factor.codes': 'recovery codes are secrets',
  'payment.back': 'the ledger has the transfer',
  'payment.paid': 'the ledger has the transfer',
  'payment.refund': 'the payment provider is asked for it; payment.back says what came of it',
  'purse-topup.refund': 'the payment provider is asked for it; the movements of the purse say what came of it',
  'person.delete': 'what was deleted must not stay in the log',
  'person.login-link': 'links are secrets, and change nothing until they are used',
  'person.password': 'passwords are secrets',
  'person.others': 'what was deleted must not stay in the log',
  'person.prove': 'what was deleted must not stay in the log',
  'person.reset': 'links are secrets, and change nothing until they are used',
  'session.end': 'sessions come and go; nothing that is set changes',
  'session.factor': 'sessions come and go; nothing that is set changes',
  'session.logout': 'sessions come and go; nothing that is set changes',
  'session.prove': 'sessions come and go; nothing that is set changes',
  'session.refuse': 'nothing changes',
  'session.start': 'sessions come and go; nothing that is set changes',
  'setup.finish': 'there was nothing before',
  'setup.renew': 'links are secrets, and change nothing until they are used',
  'sign-up.finish': 'there was nothing before; the account has a row of its own',
  'vendor-report.create': 'what a vendor says is stored and compared; nothing that is set changes',
  'vendor.test': 'nothing changes',
} as const satisfies Partial<Record<AuditAction, string>>

/**
 * "anna@example.com (from 203.0.113.7, by the token ci) changed the account "Team A" (acc_1): requests per minute from
 * 10 to 20."
 */
export function auditSentence(facts: AuditFacts): string {
  const { actor, action, object, ip, token, detail, before, after } = facts
  const from = [...(ip === null ? [] : [`from ${ip}`]), ...(token === null ? [] : [`by the token ${token}`])]
  const where = from.length > 0 ? ` (${from.join(', ')})` : ''
  const name = [after.name, before.name, detail.name].find((one) => typeof one === 'string')
  const it = objectInWords(object, name)
  const say: Say = Object.hasOwn(DEEDS, action)
    ? DEEDS[action as AuditAction] // It was just found there.
    : () => `did "${action}" to ${it}`
  const fieldOf = (field: string) => after[field] ?? detail[field] ?? before[field]
  const did = say({
    it,
    detail: (...fields) =>
      inWords(
        fields.map(fieldOf).find((one) => one !== undefined),
        'something',
      ),
  })
  const changes = changeSentences({ detail, before, after })
  const what = changes.map((one) => one.replace(/\.$/, '')).join('; ')
  return `${actor}${where} ${did}${what === '' ? '' : `: ${what}`}.`
}

function objectInWords(object: string, name: string | undefined): string {
  const version = /^catalog\/(\d+)$/.exec(object)?.[1]
  if (version !== undefined) return `version ${version} of the catalog`
  return name === undefined || name === object ? object : `"${name}" (${object})`
}

/**
 * One phrase for each field that differs: "requests per minute from 10 to 20". Changes of the catalog are sentences
 * already.
 */
export function changeSentences({ detail, before, after }: Pick<AuditFacts, 'detail' | 'before' | 'after'>): string[] {
  const told = Array.isArray(detail.changes) ? detail.changes.map(String) : []
  const [was, is] = [leavesOf(before), leavesOf(after)]
  const names = [...new Set([...was.keys(), ...is.keys()])]
  const differing = names.flatMap((name) => {
    const [old, now] = [was.get(name), is.get(name)]
    if (JSON.stringify(old ?? null) === JSON.stringify(now ?? null)) return []
    const field = nameInWords(name)
    // The sentence names it already.
    if (!was.has(name)) return name === 'name' ? [] : [`${field} ${inWords(now)}`]
    return [is.has(name) ? `${field} from ${inWords(old)} to ${inWords(now)}` : `${field} was ${inWords(old)}`]
  })
  const note = ['reason', 'note'].flatMap((name) =>
    typeof detail[name] === 'string' && detail[name] !== '' ? [`${name} "${detail[name]}"`] : [],
  )
  return [...told, ...differing, ...note]
}

/** Members of objects apart, under the names of both: `limits.concurrency`. */
function leavesOf(tree: Detail, path = ''): Map<string, unknown> {
  const leaves = new Map<string, unknown>()
  for (const [name, value] of Object.entries(tree)) {
    const at = path === '' ? name : `${path}.${name}`
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      // An object without members comes from JSON, which only this house wrote.
      for (const [inner, leaf] of leavesOf(value as Detail, at)) leaves.set(inner, leaf)
    else leaves.set(at, value)
  }
  return leaves
}

/** "limits.requestsPerMinute" becomes "requests per minute". */
function nameInWords(name: string): string {
  return name
    .replace(/^limits\./, '')
    .replaceAll('.', ' ')
    .replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
}

function inWords(value: unknown, absent = 'none'): string {
  if (value === null || value === undefined || value === '') return absent
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.length === 0 ? absent : value.map((one) => inWords(one)).join(', ')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
