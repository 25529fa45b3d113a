// A person's consent: which program asks, and what it gets. What is allowed becomes a key of the account, with restrictions and a daily limit, listed
// among the others; the tokens of the grant stand for it.
import type { Keys } from '../admission/keys.ts'
import { Fault } from '../kernel/fault.ts'
import type { Connections } from '../operator/resources/session.ts'
import type { Authority } from './open.ts'

const CLIENT_CHARS_MAX = 80

export function createConnections(authority: Authority, { keys }: { keys: Pick<Keys, 'create'> }): Connections {
  /** The consent that the browser of this request was sent to, and no other. */
  async function asked(http: Parameters<Connections['look']>[0], uid: string) {
    const provider = await authority.load()
    const interaction = await provider.interactionDetails(http.request, http.response).catch(() => undefined)
    const client = interaction && (await provider.Client.find(String(interaction.params.client_id)))
    if (!client || interaction.uid !== uid)
      throw new Fault('not_found', {
        message: 'This request to connect is not known here, or has expired. Begin anew.',
      })
    const { redirect_uri: redirectUri } = interaction.params
    return { provider, client, redirectTo: new URL(String(redirectUri)) }
  }

  return {
    async look(http, uid) {
      const { client, redirectTo } = await asked(http, uid)
      const isDocument = client.clientId.startsWith('https://')
      return {
        client: nameOf(client),
        // Who vouches for the name: the host of its document, or nobody.
        vouchedBy: isDocument ? new URL(client.clientId).host : null,
        redirectsTo: shownRedirect(redirectTo),
      }
    },
    async refuse(http, uid) {
      const { provider } = await asked(http, uid)
      const error = { error: 'access_denied', error_description: 'The person did not agree.' }
      return provider.interactionResult(http.request, http.response, error, { mergeWithLastSubmission: false })
    },
    async allow(http, uid, { person, account, models, limits, by }) {
      const { provider, client } = await asked(http, uid)
      const grant = new provider.Grant({ accountId: person, clientId: client.clientId })
      grant.addOIDCScope(`${SCOPE} offline_access`)
      grant.addResourceScope(resourceOf(authority.issuer()), SCOPE)
      const grantId = await grant.save()
      const name = nameOf(client)
      await keys.create(account, { name, models, limits, grant: { id: grantId, client: name } }, by)
      const result = { login: { accountId: person, remember: false }, consent: { grantId } }
      return provider.interactionResult(http.request, http.response, result, { mergeWithLastSubmission: false })
    },
  }
}

/** Anybody may call a program anything: what is shown is one short line. */
function nameOf({ clientName, clientId }: { clientName?: string; clientId: string }): string {
  const name = (clientName ?? '')
    .replaceAll(/[\p{Cc}\p{Cf}]/gu, ' ')
    .trim()
    .slice(0, CLIENT_CHARS_MAX)
    .toWellFormed()
  return name || clientId.slice(0, CLIENT_CHARS_MAX)
}

// Where a program may have people sent back to, and how that is shown to them.

/** Browsers let any website answer these, by `registerProtocolHandler` or an extension: such an address is no program on the person's machine. */
const CLAIMABLE =
  /^(?:(?:web|ext)\+.*|bitcoin|ethereum|ftps?|geo|im|ircs?|magnet|mailto|matrix|mms|news|nntp|openpgp4fpr|sftp|sip|sms|smsto|ssh|tel|urn|webcal|wtai|xmpp):$/
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/

export function mayRedirectTo({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' ? LOOPBACK.test(hostname) : !CLAIMABLE.test(protocol)
}

/** With its scheme. The host is shown only where it means a machine: in a scheme of a program's own it is any word. */
function shownRedirect({ protocol, host }: URL): string {
  const isWeb = protocol === 'https:' || protocol === 'http:'
  return isWeb ? `${protocol}//${host}` : `${protocol} (a program on your device)`
}

/** There is one: to use the tools, as far as the consent goes. */
export const SCOPE = 'mcp'

/** What tokens are for. */
export const resourceOf = (issuer: string) => `${issuer}/mcp`

/**
 * Programs name what they were pointed at: any of the paths, with or without a slash. All of them are the one resource; anything else stays
 * what it is, and is refused.
 */
export function createResourceName(issuer: string, paths: readonly string[]) {
  const listed = new Set(paths.map((path) => issuer + path))
  return (asked: string | string[]): string | string[] =>
    [asked].flat().every((one) => listed.has(one.replace(/\/$/, ''))) ? resourceOf(issuer) : asked
}
