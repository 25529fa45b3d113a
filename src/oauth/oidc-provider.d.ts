// What of the library is used here. Its own package has no types.
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  interface Interaction {
    readonly uid: string
    readonly params: Readonly<Record<string, unknown>>
  }

  class Grant {
    constructor(about: { accountId: string; clientId: string })
    addOIDCScope(scope: string): void
    addResourceScope(resource: string, scope: string): void
    save(): Promise<string>
  }

  interface Client {
    readonly clientId: string
    readonly clientName?: string
    readonly clientUri?: string
    grantTypeAllowed(type: string): boolean
  }

  export default class Provider {
    proxy: boolean
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>)
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>
    interactionResult(
      request: IncomingMessage,
      response: ServerResponse,
      result: Readonly<Record<string, unknown>>,
      options: { readonly mergeWithLastSubmission: boolean },
    ): Promise<string>
    on(event: 'server_error', listener: (context: unknown, error: unknown) => void): void
    readonly Grant: typeof Grant & { find(id: string): Promise<Grant | undefined> }
    readonly Client: { find(id: string): Promise<Client | undefined> }
  }

  export const errors: {
    readonly InvalidGrant: new (detail: string) => Error
    readonly InvalidTarget: new () => Error
    readonly SessionNotFound: new (detail: string) => Error
  }
}
