// Commands of tokens, logins, sign-up, branding and the export of the audit log.
import type { Commands } from '../command.ts'

const OF_ACCOUNT = 'Of this account; otherwise of the whole gateway.'
const ROLES = 'These roles need a second factor: {secondFactorRoles|none}.'
const SIGN_UP = {
  'Sign-up': 'mode',
  ...{ Domains: 'domains', 'Blocked domains': 'blockedDomains.length', 'Starting credits': 'credits' },
  ...{ Limits: 'limits', Terms: 'terms', 'Mails per network and hour': 'perNetworkPerHour' },
  ...{ 'Sign-ups per domain and day': 'perDomainPerDay', Challenge: 'challengeUrl' },
}

export const SETTINGS_COMMANDS: Commands = {
  'GET /tokens': {
    usage: 'tokens list',
    summary: 'The tokens of the operator API, and when each was last used.',
    columns: {
      ...{ NAME: 'name', SCOPES: 'scopes', EXPIRES: 'expiresAt', 'LAST USE': 'lastUsedAt' },
      ...{ REVOKED: 'revokedAt', ID: 'id' },
    },
    empty: 'No tokens yet. Create one with: tollgate tokens create <name> --scopes <rights>',
    orAccount: OF_ACCOUNT,
  },
  'POST /tokens': {
    usage: 'tokens create <name>',
    summary: 'Creates a token and prints it, once.',
    once: 'token',
    orAccount: OF_ACCOUNT,
  },
  'DELETE /tokens/{tokenId}': {
    usage: 'tokens revoke <token>',
    summary: 'Ends a token at once.',
    words: 'Revoked.',
    orAccount: OF_ACCOUNT,
  },
  'GET /sign-up': {
    usage: 'sign-up show',
    summary: 'Shows who may sign up, and the credits and limits of new accounts.',
    columns: SIGN_UP,
  },
  'PUT /sign-up': {
    usage: 'sign-up change',
    summary: 'Sets who may sign up, and the credits, limits and terms of new accounts.',
    columns: SIGN_UP,
    merge: true,
  },
  'POST /sign-up/invites': {
    usage: 'sign-up invite <email>',
    summary: 'Invites somebody to open an account, and prints the link.',
    words: '{link}',
  },
  'GET /sign-up/invites': {
    usage: 'sign-up invites',
    summary: 'Lists invitations that have not been used yet.',
    columns: { ID: 'id', EMAIL: 'email', ENDS: 'expiresAt' },
    empty: 'There are no pending invitations.',
  },
  'DELETE /sign-up/invites/{inviteId}': {
    usage: 'sign-up withdraw <invite>',
    summary: 'Withdraws an invitation, by its id or its e-mail address.',
    words: 'The link does not work any more.',
  },
  'GET /branding': {
    usage: 'branding show',
    summary: 'Shows the name, logo, colours, support address and mail sender.',
  },
  'PUT /branding': {
    usage: 'branding change',
    summary: 'Sets the name, colours, support address and mail sender.',
    about: 'Links are set in the console or with the operator API.',
    without: ['links'],
    merge: true,
  },
  'PUT /branding/logo': { usage: 'branding logo <file>', summary: 'Sets the logo: a PNG or JPEG.' },
  'DELETE /branding/logo': { usage: 'branding remove-logo', summary: 'Removes the logo.' },
  'GET /login-policy': { usage: 'login-policy show', summary: 'The roles that need a second factor.', words: ROLES },
  'PUT /login-policy': {
    usage: 'login-policy change <roles>',
    summary: 'Sets the roles that need a second factor, with commas between them; "none": nobody needs one.',
    words: ROLES,
  },
  'POST /login-links': {
    usage: 'login-link <email>',
    summary: 'Creates a link that signs somebody in once, within 15 minutes. Use it when a login provider is down.',
    words: '{link}',
  },
  'POST /second-factor-resets': {
    usage: 'second-factor-reset <email>',
    summary: 'Removes all second factors of somebody who has lost them, and ends their sessions.',
    words: '{email} has no second factor any more and is signed out everywhere.',
  },
  'GET /audit-export': {
    usage: 'audit-export show',
    summary: 'Shows the destination of the audit log, how much was exported, and why the last attempt failed.',
  },
  'PUT /audit-export': [
    {
      usage: 'audit-export webhook <url>',
      summary: 'Exports the audit log as JSON lines to a webhook.',
      about: 'It replaces what was set before. The answer has the secret by which the receiver checks signatures.',
      set: { kind: 'webhook' },
    },
    {
      usage: 'audit-export s3 <endpoint> <bucket>',
      summary: 'Exports the audit log as JSON lines to a bucket of S3 or of an S3-compatible store.',
      set: { kind: 's3' },
    },
  ],
  'DELETE /audit-export': {
    usage: 'audit-export off',
    summary: 'Ends the export. The log itself stays.',
    words: 'The export has ended.',
  },
}
