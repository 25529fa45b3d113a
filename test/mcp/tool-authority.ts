// The authorization server of a tool server in tests: `oidc-provider`, a certified implementation, which signs in
// without a form whoever comes.
import type { IncomingMessage, ServerResponse } from 'node:http'
import Provider from 'oidc-provider'
import { listen } from '../started.ts'

export interface ToolAuthority {
  readonly issuer: string
  readonly hostAndPort: string
  /** Who comes next. */
  visitor: string
  /** Whose token it is; undefined: of nobody any more. */
  subjectOf(token: string): Promise<string | undefined>
  close(): void
}

export async function startToolAuthority(): Promise<ToolAuthority> {
  let answer = async (_request: IncomingMessage, _response: ServerResponse): Promise<void> => undefined
  const server = await listen((request, response) => {
    answer(request, response).catch((error) => response.writeHead(500).end(String(error)))
  })
  const { url: issuer, host: hostAndPort } = server
  const provider: any = new Provider(issuer, {
    clientDefaults: { token_endpoint_auth_method: 'none', grant_types: ['authorization_code', 'refresh_token'] },
    clientAuthMethods: ['none'],
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({ scope: 'notes', accessTokenTTL: 4, accessTokenFormat: 'opaque' }),
        useGrantedResource: () => true,
      },
    },
    scopes: ['openid', 'offline_access', 'notes'],
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    pkce: { required: () => true },
    cookies: { keys: ['for tests'] },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: async () => ({ sub: accountId }) }),
  } as never)
  const callback = provider.callback()
  const made: ToolAuthority = {
    issuer,
    hostAndPort,
    visitor: '',
    subjectOf: async (token) => (await provider.AccessToken.find(token))?.accountId,
    close: () => void server.close(),
  }
  answer = async (request, response) => {
    if (!request.url?.startsWith('/interaction/')) return callback(request, response)
    const { params } = await provider.interactionDetails(request, response)
    const grant = new provider.Grant({ accountId: made.visitor, clientId: params.client_id })
    grant.addOIDCScope('openid offline_access notes')
    grant.addResourceScope(params.resource, 'notes')
    const result = { login: { accountId: made.visitor, remember: false }, consent: { grantId: await grant.save() } }
    const next = await provider.interactionResult(request, response, result, { mergeWithLastSubmission: false })
    response.writeHead(303, { location: next }).end()
  }
  return made
}
