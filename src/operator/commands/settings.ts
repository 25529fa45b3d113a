// Commands of tokens, logins, sign-up and branding.
import type { Commands } from '../command.ts'

const OF_ACCOUNT = 'Of this account; otherwise of the whole gateway.'
const ROLES = 'These roles need a second factor: {secondFactorRoles|none}.'
const SIGN_UP =
  'Sign-up=mode, Domains=domains, Blocked domains=blockedDomains.length, Starting credits=credits, Limits=limits, Terms=terms, Mails per network and hour=perNetworkPerHour, Sign-ups per domain and day=perDomainPerDay, Challenge=challengeUrl'

export const SETTINGS_COMMANDS: Commands = {
  'GET /tokens': {
    usage: 'tokens list',
    columns: 'name, scopes, EXPIRES=expiresAt, LAST USE=lastUsedAt, REVOKED=revokedAt, id',
    empty: 'No tokens yet. Create one with: tollgate tokens create <name> --scopes <rights>',
    orAccount: OF_ACCOUNT,
  },
  'POST /tokens': {
    usage: 'tokens create <name>: Creates a token and prints it, once.',
    once: 'token',
    orAccount: OF_ACCOUNT,
  },
  'DELETE /tokens/{tokenId}': { usage: 'tokens revoke <token>', words: 'Revoked.', orAccount: OF_ACCOUNT },
  'GET /sign-up': {
    usage: 'sign-up show: Shows who may sign up, and the credits and limits of new accounts.',
    columns: SIGN_UP,
  },
  'PUT /sign-up': {
    usage: 'sign-up change: Sets who may sign up, and the credits, limits and terms of new accounts.',
    columns: SIGN_UP,
    merge: true,
  },
  'POST /sign-up/invites': {
    usage: 'sign-up invite <email>: Invites somebody to open an account, and prints the link.',
    words: '{link}',
  },
  'GET /sign-up/invites': {
    usage: 'sign-up invites',
    columns: 'id, email, ENDS=expiresAt',
    empty: 'There are no pending invitations.',
  },
  'DELETE /sign-up/invites/{inviteId}': {
    usage: 'sign-up withdraw <invite>: Withdraws an invitation, by its id or its email address.',
    words: 'The link does not work any more.',
  },
  'GET /branding': 'branding show',
  'PUT /branding': {
    usage: 'branding change: Sets the name, colors, support address and mail sender.',
    about: 'Links are set in the console or with the operator API.',
    without: ['links'],
    merge: true,
  },
  'PUT /branding/logo': 'branding logo <file>: Sets the logo: a PNG or JPEG.',
  'DELETE /branding/logo': 'branding remove-logo',
  'GET /login-policy': { usage: 'login-policy show', words: ROLES },
  'PUT /login-policy': {
    usage:
      'login-policy change <roles>: Sets the roles that need a second factor, with commas between them; "none": nobody needs one.',
    words: ROLES,
  },
  'POST /login-links': {
    usage:
      'login-link <email>: Creates a link that signs somebody in once, within 15 minutes. Use it when a login provider is down.',
    words: '{link}',
  },
  'POST /second-factor-resets': {
    usage:
      'second-factor-reset <email>: Removes all second factors of somebody who has lost them, and ends their sessions.',
    words: '{email} has no second factor any more and is signed out everywhere.',
  },
}
