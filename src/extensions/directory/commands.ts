// Commands of login providers.
import type { Commands } from '../../operator/command.ts'

export const DIRECTORY_COMMANDS: Commands = {
  'GET /login-providers': {
    usage: 'login-providers list',
    columns: 'id, name, issuer, DOMAINS=domains.domain, enabled',
    empty: 'None yet. Add one with: tollgate login-providers set <id> <file>',
  },
  'PUT /login-providers/{id}': {
    usage: 'login-providers set <id> <file>: Adds or replaces a login provider from a JSON file.',
    about:
      'The file has the fields of PUT /login-providers/{id}: name, issuer, clientId, and if needed scopes, groupsClaim, domains, groups, provesSecondFactor, enabled.',
    without: [
      'name',
      'issuer',
      'clientId',
      'scopes',
      'groupsClaim',
      'provesSecondFactor',
      'enabled',
      'domains',
      'groups',
    ],
  },
  'POST /login-providers/{id}/test': {
    usage: 'login-providers test <id>: Reads the metadata of a login provider.',
    words: '{message}',
  },
  'DELETE /login-providers/{id}': {
    usage: 'login-providers remove <id>: Removes a login provider. People and memberships stay.',
    words: 'Removed.',
  },
}
