// The endpoints of conversations on WebSockets, and what a browser opens one with.
import { free, integer, list, loose, object, string } from '../../catalog/endpoint.ts'
import { text } from '../../catalog/field.ts'
import { defineEndpoints } from '../../catalog/generation.ts'

/** Addresses that take WebSockets, and nothing else. */
export const SOCKETS = defineEndpoints({
  realtime: {
    route: 'GET /v1/realtime',
    aliases: ['/alpha/realtime', '/alpha/v1/realtime'],
    tag: 'Audio',
    surface: 'responses',
    sells: 'realtime',
    title: 'Realtime session',
    description:
      'Opens a WebSocket for a conversation in text and sound, in the Realtime protocol. Each response is a call of its own, charged by the tokens that the vendor reports. Browsers connect with a client secret. An extension of the contract.',
    returns: 'The WebSocket.',
    params: { model: text('A model of type `realtime` from GET /v1/models.', 'alpha-realtime-1') },
  },
  'responses/socket': {
    route: 'GET /v1/responses',
    aliases: ['/alpha/responses', '/alpha/v1/responses'],
    tag: 'Text',
    surface: 'responses',
    title: 'Responses over a WebSocket',
    description:
      'Opens a WebSocket. Each `response.create` event on it is a call of its own, charged like POST; the events of its response come back as text frames. An extension of the contract.',
    returns: 'The WebSocket.',
  },
})

const session = {
  ...free,
  description: 'The session that it opens: `type: "realtime"`, `model`, and what else it has.',
}

/** Client secrets for Realtime sessions of browsers. */
export const CLIENT_SECRETS = defineEndpoints({
  'realtime/client_secrets': {
    route: 'POST /v1/realtime/client_secrets',
    aliases: ['/alpha/realtime/client_secrets', '/alpha/v1/realtime/client_secrets'],
    tag: 'Audio',
    surface: 'responses',
    title: 'Client secret for a Realtime session',
    description:
      'A secret with which a browser opens a WebSocket to /v1/realtime for a minute, in the name of this key, for this model only. Free of charge. An extension of the contract.',
    returns: '`value`, the secret, and `expires_at`, when it can no longer be used to connect.',
    body: {
      ...loose({
        session,
        expires_after: loose({ anchor: string, seconds: { ...integer, minimum: 10, description: 'At most 60.' } }),
        origins: {
          ...list(string),
          description: 'The sites whose pages may use it. Absent: none, only programs outside of browsers.',
        },
      }),
      required: ['session'],
      examples: [{ session: { type: 'realtime', model: 'alpha-realtime-1' } }],
    },
    answer: object({ value: string, expires_at: integer, session: free }),
  },
})
