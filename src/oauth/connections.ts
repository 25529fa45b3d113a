// A person's consent: which program asks, and what it gets. What is allowed becomes a key of the account, with restrictions and a daily limit, listed
// among the others; the tokens of the grant stand for it.
import type { Keys } from '../admission/keys.ts'
import { Fault } from '../kernel/fault.ts'
import type { Connections } from '../operator/resources/consent.ts'
import type { Authority } from './open.ts'
import { shownRedirect } from './redirect.ts'
import { resourceOf, SCOPE } from './scope.ts'

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
