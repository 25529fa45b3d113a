// Commands of tokens and logins.
import type { Commands } from '../command.ts'

const OF_ACCOUNT = 'Of this account; otherwise of the whole gateway.'
const ROLES = 'These roles need a second factor: {secondFactorRoles|none}.'

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
