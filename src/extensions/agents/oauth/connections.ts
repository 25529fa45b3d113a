// A person's consent: which program asks, and what it gets. A consent creates an API key of the account, with
// restrictions and a daily limit, listed among the others. The grant's tokens stand for that key.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Keys } from '../../../admission/keys.ts'
import type { PersonPlace } from '../../../admission/teams.ts'
import type { By } from '../../../database/audit.ts'
import { Fault } from '../../../kernel/fault.ts'
import type { LimitsPatch } from '../../../ledger/limits.ts'
import type { ConsentView } from '../views.ts'
import type { Authority } from './open.ts'

interface Http {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

export interface Consent {
  readonly person: string
  /** Team, project and member of its key. */
  readonly place: PersonPlace
  readonly account: string
  readonly models: readonly string[] | null
  readonly limits: LimitsPatch
  readonly by: By
}

const CLIENT_CHARS_MAX = 80

/** Each checks the browser's cookie, so the link of a consent request works only in the browser that started it. */
export type Connections = ReturnType<typeof createConnections>

export function createConnections(authority: Authority, { keys }: { keys: Pick<Keys, 'create'> }) {
  /** The pending consent that belongs to this request's browser; another browser cannot use it. */
  async function asked(http: Parameters<Connections['look']>[0], uid: string) {
    const provider = await authority.load()
    const interaction = await provider.interactionDetails(http.request, http.response).catch(() => undefined)
    const client = interaction && (await provider.Client.find(String(interaction.params.client_id)))
    if (!client || interaction.uid !== uid)
      throw new Fault('not_found', {
        message: 'This request to connect is not known here, or has expired. Start again.',
      })
    const { redirect_uri: redirectUri } = interaction.params
    return { provider, client, redirectTo: new URL(String(redirectUri)) }
  }

  return {
    async look(http: Http, uid: string): Promise<ConsentView> {
      const { client, redirectTo } = await asked(http, uid)
      const isDocument = client.clientId.startsWith('https://')
      return {
        client: nameOf(client),
        // The host that vouches for the program's name: the host of its metadata document, or none.
        vouchedBy: isDocument ? new URL(client.clientId).host : null,
        redirectsTo: shownRedirect(redirectTo),
      }
    },
    async refuse(http: Http, uid: string): Promise<string> {
      const { provider } = await asked(http, uid)
      const error = { error: 'access_denied', error_description: 'The person did not agree.' }
      return provider.interactionResult(http.request, http.response, error, { mergeWithLastSubmission: false })
    },
    /** Returns the address to which the browser goes next. */
    async allow(http: Http, uid: string, { person, place, account, models, limits, by }: Consent): Promise<string> {
      const { provider, client } = await asked(http, uid)
      const grant = new provider.Grant({ accountId: person, clientId: client.clientId })
      grant.addOIDCScope(`${SCOPE} offline_access`)
      grant.addResourceScope(resourceOf(authority.issuer()), SCOPE)
      const grantId = await grant.save()
      const name = nameOf(client)
      const { memberId, teamId, projectId } = place
      const belongs = { memberId, teamId: projectId ?? teamId }
      await keys.create(account, { name, models, limits, ...belongs, grant: { id: grantId, client: name } }, by)
      const result = { login: { accountId: person, remember: false }, consent: { grantId } }
      return provider.interactionResult(http.request, http.response, result, { mergeWithLastSubmission: false })
    },
  }
}

/** A program may register under any name, so it is shown as one short line. */
export function nameOf({ clientName, clientId }: { clientName?: string; clientId: string }): string {
  const name = (clientName ?? '')
    .replaceAll(/[\p{Cc}\p{Cf}]/gu, ' ')
    .trim()
    .slice(0, CLIENT_CHARS_MAX)
    .toWellFormed()
  return name || clientId.slice(0, CLIENT_CHARS_MAX)
}

// Which redirect addresses a program may use, and how they are shown to people.

/**
 * Schemes that any website can claim in a browser, by `registerProtocolHandler` or an extension. They do not prove that
 * a program on the person's machine answers.
 */
const CLAIMABLE =
  /^(?:(?:web|ext)\+.*|bitcoin|ethereum|ftps?|geo|im|ircs?|magnet|mailto|matrix|mms|news|nntp|openpgp4fpr|sftp|sip|sms|smsto|ssh|tel|urn|webcal|wtai|xmpp):$/
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

export function mayRedirectTo({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' ? LOOPBACK.test(hostname) : !CLAIMABLE.test(protocol)
}

/**
 * The redirect address as people see it. The host is shown only for web addresses: in a program's own scheme it can be
 * any word.
 */
function shownRedirect({ protocol, host }: URL): string {
  const isWeb = protocol === 'https:' || protocol === 'http:'
  return isWeb ? `${protocol}//${host}` : `${protocol} (a program on your device)`
}

/** Use of the tools, within the limits of the consent. */
export const SCOPE = 'mcp'

/** The tools: the one resource that tokens of authorization codes give access to. */
export const resourceOf = (issuer: string) => `${issuer}/mcp`
/** Every endpoint for API keys, by the tokens of device codes. */
export const apiOf = (issuer: string) => `${issuer}/v1`

/**
 * Programs name the address that they were configured with: any of the paths, with or without a trailing slash. All of
 * these map to the one resource; any other value is left unchanged and then rejected.
 */
export function createResourceName(issuer: string, paths: readonly string[]) {
  const listed = new Set(paths.map((path) => issuer + path))
  return (asked: string | string[]): string | string[] =>
    [asked].flat().every((one) => listed.has(one.replace(/\/$/, ''))) ? resourceOf(issuer) : asked
}
