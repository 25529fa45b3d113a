// A program that signs in by a device code, as one on a machine without a browser does.
import assert from 'node:assert/strict'

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

export interface DeviceCode {
  readonly device_code: string
  readonly user_code: string
  readonly verification_uri: string
  readonly verification_uri_complete: string
}

export async function deviceProgram(url: string, client_name: string) {
  const registered = await fetch(`${url}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name,
      grant_types: [DEVICE_GRANT, 'refresh_token'],
      response_types: [],
      redirect_uris: [],
    }),
  })
  const { client_id: clientId } = (await registered.json()) as { client_id: string }
  assert.equal(registered.status, 201)

  async function ask(path: string, fields: Record<string, string>): Promise<{ status: number; body: any }> {
    const body = new URLSearchParams({ client_id: clientId, ...fields })
    const answer = await fetch(url + path, { method: 'POST', body })
    return { status: answer.status, body: await answer.json() }
  }

  return {
    ask,
    async begin(fields: Record<string, string> = {}): Promise<DeviceCode> {
      const { status, body } = await ask('/oauth/device', { scope: 'api mcp offline_access', ...fields })
      assert.equal(status, 200, JSON.stringify(body))
      return body
    },
    poll: ({ device_code }: DeviceCode) => ask('/oauth/token', { grant_type: DEVICE_GRANT, device_code }),
    refresh: (refresh_token: string) => ask('/oauth/token', { grant_type: 'refresh_token', refresh_token }),
  }
}
