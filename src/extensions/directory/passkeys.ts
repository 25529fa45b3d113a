// Passkeys (WebAuthn): a key in the person's device that signs our challenge for our host alone, so nothing can be
// phished. The device asks for a fingerprint or a PIN itself, so a passkey counts as both factors.

import { isIP } from 'node:net'
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import * as z from 'zod'
import type { By } from '../../database/audit.ts'
import { sql } from '../../database/database.ts'
import type { Flows } from '../../identity/flows.ts'
import type { SecondFactorDeps, SecondFactors } from '../../identity/second-factors.ts'
import type { Person, Session } from '../../identity/sessions.ts'
import { Fault } from '../../kernel/fault.ts'
import { newId } from '../../kernel/world.ts'

interface Asked {
  readonly token: string
  readonly options: Record<string, unknown>
}

const base64url = z.string().regex(/^[\w-]{1,30000}$/)

/** The output of `PublicKeyCredential.toJSON`; the library parses its contents. */
export const passkeyResponse = z.looseObject({
  id: base64url,
  rawId: base64url,
  type: z.literal('public-key'),
  response: z.looseObject({ clientDataJSON: base64url }),
  clientExtensionResults: z.looseObject({}).default({}),
})
type PasskeyResponse = z.infer<typeof passkeyResponse>

const OF_PERSON = sql('passkey_list')`
  select credential_id, transports from second_factor where person_id = $1 and kind = 'passkey' and confirmed limit 100`
const FIND = sql('passkey_find')`
  select f.id, f.credential_id, f.public_key, f.counter::int8 as counter, f.transports, p.id as person_id, p.email
   from second_factor f join person p on p.id = f.person_id where f.credential_id = $1 and f.kind = 'passkey' and f.confirmed`
const USED = sql('passkey_used')`update second_factor set counter = $2, used_at = now() where id = $1`
const INSERT = sql('passkey_insert')`
  insert into second_factor (id, person_id, kind, name, credential_id, public_key, transports, counter, confirmed)
   values ($1, $2, 'passkey', $3, $4, $5, $6, $7, true) on conflict do nothing returning id`
const MINUTES = 5
/**
 * EdDSA, ES256 and RS256: what authenticators have. Named here, because the library's default asks the runtime for more
 * and makes it warn.
 */
const supportedAlgorithmIDs = [-8, -7, -257]
const PER_PERSON_MAX = 20

interface StoredPasskey {
  id: string
  credential_id: string
  public_key: Buffer
  counter: bigint
  transports: string[]
  person_id: string
  email: string
}

export type Passkeys = ReturnType<typeof createPasskeys>

export function createPasskeys(
  deps: Omit<SecondFactorDeps, 'factorKey'> & {
    readonly flows: Flows
    readonly factors: SecondFactors
    readonly publicUrl: () => string
  },
) {
  const { database, world, flows, factors } = deps
  // Loaded at first use, because most gateways never need it.
  const library = () => import('@simplewebauthn/server')
  const host = () => new URL(deps.publicUrl()).hostname
  const place = () => ({ expectedOrigin: new URL(deps.publicUrl()).origin, expectedRPID: host() })
  /** Passkeys need a host name; they do not work with an IP address. */
  const possible = () => isIP(host().replace(/^\[|\]$/g, '')) === 0

  async function ofPerson(person: string) {
    const rows = await database.query<Pick<StoredPasskey, 'credential_id' | 'transports'>>(OF_PERSON, [person])
    return rows.map(({ credential_id: id, transports }) => ({ id, transports }))
  }
  function requirePossible(): void {
    if (!possible())
      throw new Fault('conflict', {
        message: 'Passkeys need a gateway that is reached by a host name, such as PUBLIC_URL.',
      })
  }
  /** A challenge can be used once, even if the answer is wrong. */
  async function challengeOf(
    kind: 'passkey' | 'passkey-new',
    token: string | undefined,
    person?: string,
  ): Promise<string> {
    const flow = await flows.finish<{ challenge: string }>(kind, token)
    if (!flow || (person !== undefined && flow.person !== person)) throw notAccepted('challenge')
    return flow.data.challenge
  }

  return {
    possible,

    /**
     * Returns the options for the browser and the token of the flow. Without a person, the device offers all its
     * passkeys for this host.
     */
    async ask(person?: string): Promise<Asked> {
      requirePossible()
      const { generateAuthenticationOptions } = await library()
      const options = await generateAuthenticationOptions({
        rpID: host(),
        userVerification: 'required',
        ...(person === undefined ? {} : { allowCredentials: await ofPerson(person) }),
      })
      const token = await flows.begin('passkey', { challenge: options.challenge }, { person, minutes: MINUTES })
      return { token, options: { ...options } }
    },

    /** Returns the person. Throws if the answer is wrong, or was used before. */
    async verify(token: string | undefined, response: PasskeyResponse): Promise<Pick<Person, 'id' | 'email'>> {
      const expectedChallenge = await challengeOf('passkey', token)
      const [row] = await database.query<StoredPasskey>(FIND, [response.id])
      if (!row) throw notAccepted('unknown')
      const { verifyAuthenticationResponse } = await library()
      const { verified, authenticationInfo } = await verifyAuthenticationResponse({
        // The schema has checked what the library does not check itself.
        response: response as unknown as AuthenticationResponseJSON,
        ...place(),
        expectedChallenge,
        requireUserVerification: true,
        credential: {
          id: row.credential_id,
          publicKey: new Uint8Array(row.public_key),
          counter: Number(row.counter),
          transports: row.transports,
        },
      }).catch((error: unknown) => {
        throw notAccepted(String(error))
      })
      if (!verified) throw notAccepted('signature')
      await database.query(USED, [row.id, authenticationInfo.newCounter])
      return { id: row.person_id, email: row.email }
    },

    async askNew(person: Person): Promise<Asked> {
      requirePossible()
      const excludeCredentials = await ofPerson(person.id)
      if (excludeCredentials.length >= PER_PERSON_MAX)
        throw new Fault('conflict', { message: `You have ${PER_PERSON_MAX} passkeys. Remove one first.` })
      const { generateRegistrationOptions } = await library()
      const options = await generateRegistrationOptions({
        rpName: 'Tollgate',
        rpID: host(),
        userName: person.email,
        userID: new TextEncoder().encode(person.id),
        excludeCredentials,
        supportedAlgorithmIDs,
        authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      })
      const about = { person: person.id, minutes: MINUTES }
      const token = await flows.begin('passkey-new', { challenge: options.challenge }, about)
      return { token, options: { ...options } }
    },

    /** Returns recovery codes if it is the person's first second factor. */
    async add(
      session: Session,
      { token, name, response }: { token: string | undefined; name: string; response: PasskeyResponse },
      by: By,
    ): Promise<string[] | null> {
      const expectedChallenge = await challengeOf('passkey-new', token, session.person.id)
      const { verifyRegistrationResponse } = await library()
      const { registrationInfo } = await verifyRegistrationResponse({
        // The schema has checked what the library does not check itself.
        response: response as unknown as RegistrationResponseJSON,
        ...place(),
        expectedChallenge,
        supportedAlgorithmIDs,
        requireUserVerification: true,
      }).catch((error: unknown) => {
        throw notAccepted(String(error))
      })
      if (!registrationInfo) throw notAccepted('registration')
      const { id: credentialId, publicKey, counter, transports = [] } = registrationInfo.credential
      const id = `fac_${newId(world)}`
      const row = [id, session.person.id, name, credentialId, Buffer.from(publicKey), transports, counter]
      return database.transaction(async (tx) => {
        const [added] = await tx.query(INSERT, row)
        if (!added) throw new Fault('conflict', { message: 'This passkey is registered already.' })
        return factors.added(tx, session, id, by)
      })
    },
  }
}

function notAccepted(why: string): Fault {
  return new Fault('access_denied', { message: 'This passkey was not accepted. Try again.', internal: { why } })
}
