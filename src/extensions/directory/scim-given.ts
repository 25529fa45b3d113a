// What a directory sends of people and groups, checked.

import { readMailbox } from '../../identity/mailbox.ts'
import { isObject, type Json } from '../../kernel/json.ts'
import { ScimError } from './scim-query.ts'

const MEMBERS_MAX = 5_000
const CHARS_MAX = 254

export interface GivenUser {
  readonly userName: string
  readonly externalId: string | null
  readonly active: boolean
  readonly email: string
  readonly attributes: Json
}

export interface GivenGroup {
  readonly displayName: string
  readonly externalId: string | null
  readonly members: readonly string[]
}

const invalidValue = (message: string) => new ScimError(400, message, 'invalidValue')

function textOf(value: unknown, name: string): string | null {
  if (value === undefined || value === null) return null
  if (typeof value !== 'string' || value.length > CHARS_MAX || !value.isWellFormed() || /\p{Cc}/u.test(value))
    throw invalidValue(`"${name}" must be a text of at most ${CHARS_MAX} characters.`)
  return value
}

export function readUser(body: Json): GivenUser {
  const userName = textOf(body.userName, 'userName')?.trim()
  if (!userName) throw invalidValue('"userName" is missing.')
  // Some directories send it as text.
  const active = typeof body.active === 'string' ? body.active.toLowerCase() === 'true' : (body.active ?? true)
  if (typeof active !== 'boolean') throw invalidValue('"active" must be true or false.')
  const emails = readEmails(body.emails)
  const main = emails.find(({ primary }) => primary) ?? emails[0]
  const email = (main?.value ?? userName).trim().toLowerCase()
  if (!readMailbox(email) || email.length > CHARS_MAX)
    throw invalidValue('An email address is needed: in "emails", or as the "userName".')
  const name = isObject(body.name)
    ? Object.fromEntries(
        ['formatted', 'familyName', 'givenName'].flatMap((part) => {
          const value = textOf(isObject(body.name) ? body.name[part] : undefined, `name.${part}`)
          return value === null ? [] : [[part, value]]
        }),
      )
    : undefined
  const displayName = textOf(body.displayName, 'displayName')
  return {
    userName,
    active,
    email,
    externalId: textOf(body.externalId, 'externalId'),
    attributes: {
      ...(displayName === null ? {} : { displayName }),
      ...(name ? { name } : {}),
      ...(emails.length ? { emails } : {}),
    },
  }
}

interface GivenEmail {
  readonly value: string
  readonly type?: string
  readonly primary?: boolean
}

function readEmails(given: unknown): GivenEmail[] {
  if (given === undefined || given === null) return []
  if (!Array.isArray(given) || given.length > 20) throw invalidValue('"emails" must be a list of at most 20.')
  return given.map((entry) => {
    const value = isObject(entry) ? textOf(entry.value, 'emails.value') : null
    if (!isObject(entry) || value === null) throw invalidValue('An entry of "emails" must have a "value".')
    const type = textOf(entry.type, 'emails.type')
    return {
      value,
      ...(type === null ? {} : { type }),
      ...(typeof entry.primary === 'boolean' ? { primary: entry.primary } : {}),
    }
  })
}

/** The id at the end of a user's address. */
const idIn = (address: unknown) => (typeof address === 'string' ? address.split('/').at(-1) : undefined)

export function readGroup(body: Json): GivenGroup {
  const displayName = textOf(body.displayName, 'displayName')?.trim()
  if (!displayName) throw invalidValue('"displayName" is missing.')
  const members = body.members ?? []
  if (!Array.isArray(members) || members.length > MEMBERS_MAX)
    throw invalidValue(`"members" must be a list of at most ${MEMBERS_MAX}.`)
  const ids = members.map((entry) => {
    const value = isObject(entry) ? textOf(entry.value ?? idIn(entry.$ref), 'members.value') : null
    if (value === null) throw invalidValue('An entry of "members" must have a "value".')
    return value
  })
  return { displayName, externalId: textOf(body.externalId, 'externalId'), members: [...new Set(ids)] }
}
