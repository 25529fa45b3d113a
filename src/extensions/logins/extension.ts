// The clouds' own logins (Amazon, Google, Microsoft, OAuth). Their tokens are shared by all processes.
import { defineExtension } from '../../extension.ts'
import { createLogins } from './login.ts'
import { createTokenCache, createTokenStore } from './token-cache.ts'

export const logins = defineExtension({
  name: 'logins',
  logins: ({ database, secrets, ...of }) =>
    createLogins({ ...of, tokens: createTokenCache({ ...of, store: createTokenStore({ ...of, database, secrets }) }) }),
})
