// Commands of accounts, keys (also of vendors), people, budgets and teams.
import type { Commands } from '../command.ts'

const PEOPLE = { EMAIL: 'email', ROLE: 'role', 'LAST SEEN': 'lastSeenAt', ID: 'userId' }
const BUDGETS = {
  ...{ BUDGET: 'id', NAME: 'name', SCOPE: 'scope', VALUE: 'value|each', MAX: '{max} {unit}', PER: 'span' },
  ...{ SECONDS: 'windowSeconds', USED: 'used', VALUES: 'values', HARD: 'hard', RENEWS: 'resetsAt' },
}
const VALUES = { VALUE: 'value', USED: 'used', LEFT: 'left', MAX: 'max', SHARE: 'share', RENEWS: 'resetsAt' }

const TEAMS = {
  TEAM: 'id',
  NAME: 'name',
  PARENT: 'parentId',
  KEYS: 'keys',
  MEMBERS: 'members.email',
  GROUP: 'scimGroup',
}

export const ACCOUNT_COMMANDS: Commands = {
  'GET /accounts/{id}/byok-keys': {
    usage: 'byok-keys list <account>',
    summary: 'Lists the vendors for which an account may bring a key (BYOK), and its keys.',
    columns: {
      ...{ VENDOR: 'vendor', STORED: 'stored', ENDS: 'last4', FALLBACK: 'fallback', ACCEPTED: 'allowed' },
      ...{ 'FEE A CALL': 'fee.call', 'FEE SHARE': 'fee.share', MODELS: 'products.uid' },
    },
    empty: 'No vendor of the catalog accepts BYOK keys. A vendor or model does with "byokFee" in its entry.',
  },
  'PUT /accounts/{id}/byok-keys/{name}': {
    usage: 'byok-keys set <account> <vendor>',
    summary: 'Tests an account’s BYOK key at a vendor and stores it, encrypted; or changes the fallback.',
    about: 'Calls of the account then use it and cost the fee of the catalog instead of the price.',
    words: '{test.message|Stored.}',
  },
  'DELETE /accounts/{id}/byok-keys/{name}': {
    usage: 'byok-keys remove <account> <vendor>',
    summary: 'Removes an account’s BYOK key at a vendor: its calls cost the price again.',
    words: 'It is no longer stored.',
  },
  'GET /vendors': {
    usage: 'vendors list',
    summary: 'Lists vendors with their credentials and health.',
    columns: {
      ...{ VENDOR: 'name', ADDRESS: 'baseUrl', CREDENTIAL: '{credential.name|none needed}: {credential.source}' },
      ...{ BREAKER: 'breaker', SINCE: 'since', WHY: 'reason', PROBE: 'probe.state|off', 'PROBE SAID': 'probe.message' },
      ...{ CALLS: 'requests', ERRORS: 'errors', 'P50 MS': 'latencyMsP50', 'LAST ERROR': 'lastError' },
    },
    empty: 'No vendors yet. Connect one with: tollgate connect <preset>; tollgate presets lists them.',
  },
  'PUT /vendors/{name}/credential': {
    usage: 'vendors credential <vendor>',
    summary: 'Stores a vendor’s credential, encrypted. Reads it from standard input.',
    about: 'It cannot be an argument, because arguments end up in the shell history.',
    words: 'Stored as {name}.',
  },
  'DELETE /vendors/{name}/credential': {
    usage: 'vendors forget <vendor>',
    summary: 'Removes a stored credential.',
    words: '{name} is no longer stored.',
  },
  'GET /accounts': {
    usage: 'accounts list',
    summary: 'Accounts with their balances, newest first.',
    columns: { NAME: 'name', STATUS: 'status', BALANCE: 'balance', HELD: 'held', LIMITS: 'limits', ID: 'id' },
    empty: 'No such accounts. Create one with: tollgate accounts create <name> --credits 100',
  },
  'POST /accounts': { usage: 'accounts create <name>', summary: 'Creates an account.' },
  'GET /accounts/{id}': { usage: 'accounts show <account>', summary: 'Shows one account.' },
  'PATCH /accounts/{id}': { usage: 'accounts change <account>', summary: 'Renames an account, or changes its limits.' },
  'POST /accounts/{id}/suspend': {
    usage: 'accounts suspend <account>',
    summary: 'Suspends an account: its calls get 403 with the reason. Its credits stay, and running calls end.',
  },
  'POST /accounts/{id}/close': {
    usage: 'accounts close <account>',
    summary: 'Closes an account: its keys end, and its balance is paid out or written off.',
    about:
      'It is suspended first, and running calls end and are charged. While calls still run, nothing is moved and the account stays suspended: close it again later. Statements stay readable.',
  },
  'POST /accounts/{id}/reopen': {
    usage: 'accounts reopen <account>',
    summary: 'Reopens a suspended or closed account. Keys that ended when it was closed stay revoked.',
  },
  'PUT /accounts/{id}/test-balance': {
    usage: 'credits refill-test <account>',
    summary: 'Fills up the test balance of an account, which its test keys spend.',
  },
  'GET /accounts/{id}/webhook-secret': {
    usage: 'accounts webhook-secret <account>',
    summary: 'The secret with which receivers of an account verify webhooks.',
    words: '{secret}',
  },
  'POST /accounts/{id}/credits': [
    { usage: 'credits add <account> <amount>', summary: 'Adds credits to an account.' },
    {
      usage: 'credits take <account> <amount>',
      summary: 'Takes back credits, at most what is available.',
      set: { amount: '-{amount}' },
      without: ['correction', 'endsAt', 'products', 'priority'],
    },
  ],
  'GET /limits': {
    usage: 'limits show',
    summary: 'The limits of the whole system.',
    empty: 'The system has no limits.',
  },
  'PATCH /limits': {
    usage: 'limits change',
    summary: 'Changes the limits of the whole system.',
    empty: 'The system has no limits.',
  },
  'GET /accounts/{id}/keys': {
    usage: 'keys list <account>',
    summary: 'The keys of an account, newest first.',
    columns: {
      NAME: 'name',
      KEY: '{prefix}…{last4}',
      MODELS: 'models|all',
      ENDPOINTS: 'endpoints|all',
      EXPIRES: 'expiresAt',
      REVOKED: 'revokedAt',
      'LAST USED': 'lastUsedAt',
      ID: 'id',
    },
    empty: 'No keys yet. Create one with: tollgate keys create <account> <name>',
  },
  'POST /accounts/{id}/keys': {
    usage: 'keys create <account> <name>',
    summary: 'Creates a key. Its value is shown once.',
    once: 'key',
  },
  'PATCH /keys/{id}': { usage: 'keys change <key>', summary: 'Changes the name, restrictions or limits of a key.' },
  'DELETE /keys/{id}': {
    usage: 'keys revoke <key>',
    summary: 'Revokes a key: at once in this process, within two seconds in all others.',
  },
  'POST /keys/{id}/rotate': {
    usage: 'keys rotate <key>',
    summary: 'Replaces a key by a new one. The old one keeps working for a while.',
    about: 'The new key has the settings of the old one, except those given here.',
    once: 'key',
  },
  'GET /accounts/{id}/members': {
    usage: 'members list <account>',
    summary: 'The people of an account.',
    columns: PEOPLE,
    empty: 'No members yet. Invite one with: tollgate members invite <account> <email>',
  },
  'POST /accounts/{id}/invites': {
    usage: 'members invite <account> <email>',
    summary:
      'Invites somebody to an account by a link that is valid for a week. It is mailed if a mail server is set up.',
    words: '{link|The link was sent by mail.}',
  },
  'DELETE /accounts/{id}/members/{userId}': {
    usage: 'members remove <account> <user>',
    summary: 'Ends a membership at once, with the person’s keys, programs and tokens in the account.',
    words: 'Removed. Ended: {ended|nothing}.',
  },
  'PATCH /accounts/{id}/members/{userId}': {
    usage: 'members role <account> <user> <role>',
    summary: 'Changes the role of a member, at once.',
    words: 'Now {role}. Ended: {ended|nothing}.',
  },
  'POST /setup-link': {
    usage: 'setup-link',
    summary: 'Creates a new setup link for the console, while there is no operator.',
    words: '{link}',
  },
  'POST /password-link': {
    usage: 'password-link <email>',
    summary: 'Creates a link to reset a forgotten password. It is valid for a day.',
    words: '{link}',
  },
  'GET /operators': {
    usage: 'operators list',
    summary: 'The people who run the gateway.',
    columns: PEOPLE,
    empty: 'Nobody yet. For a link that makes the first one: tollgate setup-link',
  },
  'DELETE /operators/{userId}': {
    usage: 'operators remove <user>',
    summary: 'Ends a person’s role in the gateway at once. Their memberships in accounts stay.',
    words: 'Removed.',
  },
  'PATCH /operators/{userId}': {
    usage: 'operators role <user> <role>',
    summary: 'Changes the role of a person in the gateway, at once.',
    words: 'Now {role}.',
  },
  'POST /operator-invites': {
    usage: 'operators invite <email>',
    summary: 'Creates a link by which somebody joins the gateway’s operators. It is valid for a week.',
    words: '{link}',
  },
  'GET /accounts/{id}/budgets': {
    ...{ usage: 'budgets list <account>', summary: 'The budgets of an account, and how much of them is used.' },
    columns: BUDGETS,
  },
  'POST /accounts/{id}/budgets': {
    usage: 'budgets create <account> <scope> <max>',
    summary: 'Makes a budget: for one value, or as a default for each value.',
    about:
      'The scope is user, session, key, member, team, project, a tag such as tag:feature, or session:<team>: each session of a team.',
  },
  'PATCH /accounts/{id}/budgets/{budgetId}': {
    usage: 'budgets change <account> <budget> [max]',
    summary: 'Changes a budget. What it counts, and for whom, cannot be changed.',
  },
  'DELETE /accounts/{id}/budgets/{budgetId}': {
    ...{ usage: 'budgets end <account> <budget>', summary: 'Ends a budget and deletes its counts.' },
    words: 'The budget {name} has ended.',
  },
  'GET /accounts/{id}/budgets/{budgetId}/values': {
    ...{ usage: 'budgets values <account> <budget>', summary: 'The values that used most of a budget.' },
    columns: VALUES,
  },
  'PUT /accounts/{id}/budgets/{budgetId}/values': {
    usage: 'budgets set <account> <budget> <value> <max>',
    summary: 'Sets the maximum of one value alone; "default" resets it to the maximum of the budget.',
  },
  'GET /accounts/{id}/budget-proposals': {
    ...{ usage: 'budgets proposals <account>', summary: 'What agents proposed. People confirm it in the console.' },
    columns: { PROPOSAL: 'id', BUDGET: 'budgetId', MAX: '{was} to {max}', WHY: 'reason', BY: 'proposedBy' },
  },
  'DELETE /accounts/{id}/budget-proposals/{proposalId}': {
    ...{ usage: 'budgets dismiss <account> <proposal>', summary: 'Dismisses what an agent proposed.' },
    words: 'The proposal {id} was dismissed.',
  },
  'GET /accounts/{id}/agent-settings': {
    ...{ usage: 'agent-settings list <account>', summary: 'What the agents of each team may do.' },
    columns: {
      SCOPE: 'scope',
      MODELS: 'models|all',
      DEFAULT: 'defaultModel',
      SMALL: 'smallModel',
      'CALL MAX': 'callMax',
    },
  },
  'PUT /accounts/{id}/agent-settings/{scope}': {
    usage: 'agent-settings set <account> <scope>',
    summary: 'Sets what the programs and own keys of a team’s people may do.',
    about:
      'The scope is a team or project, or "account" for everybody who is in none with settings. What is not named is not restricted.',
  },
  'DELETE /accounts/{id}/agent-settings/{scope}': {
    ...{ usage: 'agent-settings remove <account> <scope>', summary: 'Removes the settings of a team.' },
    words: 'The settings of {scope} were removed.',
  },
  'GET /accounts/{id}/programs': {
    ...{ usage: 'programs list <account>', summary: 'The programs that people have signed in, and what they spent.' },
    columns: { PERSON: 'email', PROGRAM: 'program', 'LAST USED': 'lastUsedAt', '30 DAYS': 'charged', KEY: 'keyId' },
  },
  'GET /accounts/{id}/teams': {
    ...{ usage: 'teams list <account>', summary: 'The teams and projects of an account.', columns: TEAMS },
  },
  'POST /accounts/{id}/teams': {
    ...{ usage: 'teams create <account> <name>', summary: 'Makes a team, or with --parent a project of a team.' },
  },
  'PATCH /accounts/{id}/teams/{teamId}': {
    usage: 'teams change <account> <team>',
    summary: 'Renames a team or project, or lets a group of the directory (SCIM) decide who is in it.',
  },
  'DELETE /accounts/{id}/teams/{teamId}': {
    usage: 'teams remove <account> <team>',
    summary: 'Removes a team or project without keys, projects and budgets.',
    words: '{name} was removed.',
  },
  'PUT /accounts/{id}/teams/{teamId}/members': {
    usage: 'teams members <account> <team> <people>',
    summary: 'Sets who is in a team or project.',
    about: 'People are named by e-mail address or id, with commas between them; "none" empties it.',
  },
}
