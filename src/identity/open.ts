// Composes what the gateway knows of people: how they sign in, what they may do, and how they leave. Extensions build
// on it.
import type { Audit } from '../database/audit.ts'
import type { Database } from '../database/database.ts'
import type { Log } from '../kernel/log.ts'
import type { Secrets } from '../kernel/secret.ts'
import type { World } from '../kernel/world.ts'
import { createAskedMails } from './asked-mails.ts'
import { createAttempts } from './attempts.ts'
import type { Branding } from './branding/branding.ts'
import { renderMail } from './branding/mail.ts'
import { createFlows } from './flows.ts'
import type { LeavingDeps } from './leaving.ts'
import { createMembers, type LinkMails } from './members.ts'
import { type Cost, createPasswords } from './password.ts'
import { createPeople } from './people.ts'
import { PERSON_MAILS, type PersonMails } from './person-mails.ts'
import { createSecondFactors } from './second-factors.ts'
import { createBrowsers, createSessions, type Proof } from './sessions.ts'
import { createTokens } from './tokens.ts'

interface IdentityParts extends LeavingDeps {
  readonly database: Database
  readonly world: World
  readonly audit: Audit
  readonly secrets: Secrets
  readonly log: Log
  readonly branding: Pick<Branding, 'get'>
  /** Undefined: no mail server is configured. */
  readonly mails: PersonMails | undefined
  readonly passwordCost?: Cost | undefined
  readonly publicUrl: () => string
  /** Of extensions: the ways that they add to say who one is. */
  readonly proofs: readonly Proof[]
}

export type Identity = ReturnType<typeof openIdentity>

export function openIdentity({ secrets, mails, branding, passwordCost, ...parts }: IdentityParts) {
  const { database, world, publicUrl } = parts
  const deps = {
    ...parts,
    flows: createFlows({ database, world }),
    passwords: createPasswords({ world, cost: passwordCost }),
    attempts: createAttempts(database),
    browsers: createBrowsers({ key: secrets.key('browser'), world }),
    sessions: createSessions(parts),
  }
  const { flows, passwords, attempts, browsers, sessions } = deps
  const linkMails = mails && linkMailsOf(mails, branding, publicUrl)
  return {
    flows,
    passwords,
    attempts,
    browsers,
    sessions,
    asked: createAskedMails({ ...deps, mails, branding }),
    people: createPeople(deps),
    members: createMembers({ ...deps, linkMails }),
    factors: createSecondFactors({ ...deps, factorKey: secrets.key('second-factor') }),
    tokens: createTokens({ ...deps, pepper: secrets.key('access-token') }),
  }
}

function linkMailsOf(mails: PersonMails, branding: Pick<Branding, 'get'>, publicUrl: () => string): LinkMails {
  return {
    add(tx, to, name, url) {
      const now = branding.get()
      const mail = renderMail(PERSON_MAILS[name].make({ name: now.name, url }), now, publicUrl())
      return mails.add(tx, { ...mail, to, event: `person.${name}`, about: name })
    },
    wake: () => mails.wake(),
  }
}
