// The package has no types of its own: only the parts that are used here.

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

  export interface RequestContext {
    readonly path: string
    readonly status: number
    readonly res: ServerResponse
    query: Record<string, string | string[] | undefined>
    body: object
    readonly oidc: {
      readonly route: string
      readonly params: { resource?: string | string[] }
      readonly entities: { readonly Interaction?: { readonly result?: object } }
    }
  }

  export default class Provider {
    static readonly ctx: RequestContext | undefined
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
    on(
      event: 'authorization.error' | 'server_error',
      listener: (context: RequestContext, error: Error & { allow_redirect?: boolean }) => void,
    ): void
    use(middleware: (context: RequestContext, next: () => Promise<void>) => Promise<void>): void
    readonly Grant: typeof Grant & { find(id: string): Promise<Grant | undefined> }
    readonly Client: { find(id: string): Promise<Client | undefined> }
  }

  export const errors: {
    readonly InvalidClientMetadata: new (description: string) => Error
    readonly InvalidGrant: new (detail: string) => Error
    readonly InvalidRequest: new (description: string) => Error
    readonly InvalidTarget: new () => Error
    readonly SessionNotFound: new (detail: string) => Error
    readonly SlowDown: new () => Error
    readonly UnsupportedResponseMode: new () => Error
  }
}
