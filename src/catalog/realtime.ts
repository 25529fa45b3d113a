// Client secrets for Realtime sessions of browsers.
import { type EndpointEntry, free, integer, list, loose, object, string } from './endpoint.ts'

const session = {
  ...free,
  description: 'The session that it opens: `type: "realtime"`, `model`, and what else it has.',
}

export const clientSecrets = {
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
      origins: { ...list(string), description: 'The sites whose pages may use it. Absent: any.' },
    }),
    required: ['session'],
    examples: [{ session: { type: 'realtime', model: 'alpha-realtime-1' } }],
  },
  answer: object({ value: string, expires_at: integer, session: free }),
} satisfies EndpointEntry
