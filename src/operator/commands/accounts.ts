// Commands of accounts, their balances, keys (also of vendors), people, budgets and teams, and of what a credit is
// worth.
import type { Commands } from '../command.ts'

const PEOPLE = 'email, role, LAST SEEN=lastSeenAt, ID=userId'
const BILLING = 'One credit is worth=worth.rate, Currency=worth.currency, Contact=contact'

export const ACCOUNT_COMMANDS: Commands = {
  'GET /accounts/{id}/byok-keys': {
    usage: 'byok-keys list <account>: Lists the vendors for which an account may bring a key (BYOK), and its keys.',
    columns:
      'vendor, stored, ENDS=last4, fallback, ACCEPTED=allowed, FEE A CALL=fee.call, FEE SHARE=fee.share, MODELS=products.uid',
    empty: 'No vendor of the catalog accepts BYOK keys. A vendor or model does with "byokFee" in its entry.',
  },
  'PUT /accounts/{id}/byok-keys/{name}': {
    usage:
      'byok-keys set <account> <vendor>: Tests an account’s BYOK key at a vendor and stores it, encrypted; or changes the fallback.',
    about: 'Calls of the account then use it and cost the fee of the catalog instead of the price.',
    words: '{test.message|Stored.}',
  },
  'DELETE /accounts/{id}/byok-keys/{name}': {
    usage:
      'byok-keys remove <account> <vendor>: Removes an account’s BYOK key at a vendor: its calls cost the price again.',
    words: 'It is no longer stored.',
  },
  'GET /accounts': {
    usage: 'accounts list: Accounts with their balances, newest first.',
    columns: 'name, status, balance, held, limits, id',
    empty: 'No such accounts. Create one with: tollgate accounts create <name> --credits 100',
  },
  'POST /accounts': 'accounts create <name>',
  'GET /accounts/{id}': 'accounts show <account>',
  'PATCH /accounts/{id}': 'accounts change <account>: Renames an account, or changes its limits.',
  'POST /accounts/{id}/suspend':
    'accounts suspend <account>: Suspends an account: its calls get 403 with the reason. Its credits stay, and running calls end.',
  'POST /accounts/{id}/close': {
    usage: 'accounts close <account>: Closes an account: its keys end, and its balance is paid out or written off.',
    about:
      'It is suspended first, and running calls end and are charged. While calls still run, nothing is moved and the account stays suspended: close it again later. Statements stay readable.',
  },
  'POST /accounts/{id}/reopen':
    'accounts reopen <account>: Reopens a suspended or closed account. Keys that ended when it was closed stay revoked.',
  'PUT /accounts/{id}/test-balance':
    'credits refill-test <account>: Fills up the test balance of an account, which its test keys spend.',
  'GET /webhook-secret': {
    usage: 'exports webhook-secret: Shows the secret with which receivers verify the gateway’s own webhooks.',
    words: '{secret}',
  },
  'GET /accounts/{id}/webhook-secret': { usage: 'accounts webhook-secret <account>', words: '{secret}' },
  'POST /accounts/{id}/credits': [
    'credits add <account> <amount>',
    {
      usage: 'credits take <account> <amount>: Takes back credits, at most what is available.',
      set: { amount: '-{amount}' },
      without: ['correction', 'endsAt', 'products', 'priority'],
    },
  ],
  'GET /limits': { usage: 'limits show', empty: 'The system has no limits.' },
  'PATCH /limits': { usage: 'limits change', empty: 'The system has no limits.' },
  'GET /accounts/{id}/keys': {
    usage: 'keys list <account>',
    columns:
      'name, KEY={prefix}…{last4}, MODELS=models|all, ENDPOINTS=endpoints|all, EXPIRES=expiresAt, REVOKED=revokedAt, LAST USED=lastUsedAt, id',
    empty: 'No keys yet. Create one with: tollgate keys create <account> <name>',
  },
  'POST /accounts/{id}/keys': {
    usage: 'keys create <account> <name>: Creates a key. Its value is shown once.',
    once: 'key',
  },
  'PATCH /keys/{id}': 'keys change <key>: Changes the name, restrictions or limits of a key.',
  'DELETE /keys/{id}': 'keys revoke <key>: Revokes a key: at once in this process, within two seconds in all others.',
  'POST /keys/{id}/rotate': {
    usage: 'keys rotate <key>: Replaces a key by a new one. The old one keeps working for a while.',
    about: 'The new key has the settings of the old one, except those given here.',
    once: 'key',
  },
  'GET /accounts/{id}/members': {
    usage: 'members list <account>',
    columns: PEOPLE,
    empty: 'No members yet. Invite one with: tollgate members invite <account> <email>',
  },
  'POST /accounts/{id}/invites': {
    usage:
      'members invite <account> <email>: Invites somebody to an account by a link that is valid for a week. It is mailed if a mail server is set up.',
    words: '{link|The link was sent by mail.}',
  },
  'DELETE /accounts/{id}/members/{userId}': {
    usage:
      'members remove <account> <user>: Ends a membership at once, with the person’s keys, programs and tokens in the account.',
    words: 'Removed. Ended: {ended|nothing}.',
  },
  'PATCH /accounts/{id}/members/{userId}': {
    usage: 'members role <account> <user> <role>',
    words: 'Now {role}. Ended: {ended|nothing}.',
  },
  'POST /setup-link': {
    usage: 'setup-link: Creates a new setup link for the console, while there is no operator.',
    words: '{link}',
  },
  'POST /password-link': {
    usage: 'password-link <email>: Creates a link to reset a forgotten password. It is valid for a day.',
    words: '{link}',
  },
  'GET /operators': {
    usage: 'operators list',
    columns: PEOPLE,
    empty: 'Nobody yet. For a link that makes the first one: tollgate setup-link',
  },
  'DELETE /operators/{userId}': {
    usage: 'operators remove <user>: Ends a person’s role in the gateway at once. Their memberships in accounts stay.',
    words: 'Removed.',
  },
  'PATCH /operators/{userId}': { usage: 'operators role <user> <role>', words: 'Now {role}.' },
  'POST /operator-invites': {
    usage:
      'operators invite <email>: Creates a link by which somebody joins the gateway’s operators. It is valid for a week.',
    words: '{link}',
  },
  'GET /accounts/{id}/budgets': {
    usage: 'budgets list <account>: The budgets of an account, and how much of them is used.',
    columns:
      'BUDGET=id, name, scope, VALUE=value|each, MAX={max} {unit}, PER=span, SECONDS=windowSeconds, used, values, hard, RENEWS=resetsAt',
  },
  'POST /accounts/{id}/budgets': {
    usage: 'budgets create <account> <scope> <max>: Makes a budget: for one value, or as a default for each value.',
    about:
      'The scope is user, session, key, member, team, project, a tag such as tag:feature, or session:<team>: each session of a team.',
  },
  'PATCH /accounts/{id}/budgets/{budgetId}':
    'budgets change <account> <budget> [max]: Changes a budget. What it counts, and for whom, cannot be changed.',
  'DELETE /accounts/{id}/budgets/{budgetId}': {
    usage: 'budgets end <account> <budget>: Ends a budget and deletes its counts.',
    words: 'The budget {name} has ended.',
  },
  'GET /accounts/{id}/budgets/{budgetId}/values': {
    usage: 'budgets values <account> <budget>: The values that used most of a budget.',
    columns: 'value, used, left, max, share, RENEWS=resetsAt',
  },
  'PUT /accounts/{id}/budgets/{budgetId}/values':
    'budgets set <account> <budget> <value> <max>: Sets the maximum of one value alone; "default" resets it to the maximum of the budget.',
  'GET /accounts/{id}/teams': {
    usage: 'teams list <account>',
    columns: 'TEAM=id, name, PARENT=parentId, keys, MEMBERS=members.email, GROUP=scimGroup',
  },
  'POST /accounts/{id}/teams': 'teams create <account> <name>: Makes a team, or with --parent a project of a team.',
  'PATCH /accounts/{id}/teams/{teamId}':
    'teams change <account> <team>: Renames a team or project, or lets a group of the directory (SCIM) decide who is in it.',
  'DELETE /accounts/{id}/teams/{teamId}': {
    usage: 'teams remove <account> <team>: Removes a team or project without keys, projects and budgets.',
    words: '{name} was removed.',
  },
  'PUT /accounts/{id}/teams/{teamId}/members': {
    usage: 'teams members <account> <team> <people>: Sets who is in a team or project.',
    about: 'People are named by email address or id, with commas between them; "none" empties it.',
  },
  'GET /accounts/{id}/balance':
    'balance show <account>: Shows the balance of an account, and which credits expire or are for some products only.',
  'GET /billing': {
    usage: 'billing show: Shows what a credit is worth, and the contact for customers.',
    columns: BILLING,
  },
  'PATCH /billing': {
    usage: 'billing change: Sets what a credit is worth, and the contact for customers.',
    columns: BILLING,
  },
}
