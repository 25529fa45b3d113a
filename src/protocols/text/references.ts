// Ids in a request by which a vendor would look up what it keeps: answers, items, conversations, files, containers. All accounts
// share the vendor's credential, so that such an id is let through only for the account that it was made for.
import type { TextProtocolName } from '../../catalog/kind.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import type { JsonText } from '../../kernel/json.ts'
import { isObject, type Json, objects, text } from '../check.ts'
import type { Continued } from '../protocol.ts'

const REFERENCES_MAX = 500

/** The names by which a request may refer to something, as a look at its text can tell; an escaped letter may hide any of them. */
const MAY_REFER =
  /"(?:file_?ids?|vector_?store_?ids?|container|container_?id|skill_?id|cached_?content|approval_?request_?id|audio|prompt|conversation|item_reference|reasoning|[a-z_]{1,40}_call)"|\\u|"(?:gs|s3):|"files\/|generativelanguage/i

/** Members that hold a caller's or a tool's own JSON, or what an answer quoted: nothing is looked up by an id in there. */
const OWN = new Set([
  'arguments',
  'input_schema',
  'parameters',
  'schema',
  'annotations',
  'citations',
  'results',
  'metadata',
  'labels',
])
const OWN_BELOW = new Set([...OWN, 'input', 'args', 'response'])
const OWN_TYPES = new Set(['code_execution_output', 'bash_code_execution_output'])

/** By the member's name, without its underscores and in lower case: what it names. */
const NAMES: Readonly<Record<string, string>> = {
  fileid: 'file',
  fileids: 'file',
  vectorstoreid: 'vector store',
  vectorstoreids: 'vector store',
  containerid: 'container',
  container: 'container',
  skillid: 'skill',
  cachedcontent: 'cached content',
  audio: 'recording',
  approvalrequestid: 'request for approval',
}
const ADDRESSES = new Set(['url', 'uri', 'imageurl', 'fileurl', 'fileuri', 'videourl', 'audiourl'])
/** Addresses that a vendor reads by the credential that all share. */
const BEHIND_CREDENTIAL = /^\s*(?:gs:|s3:|files\/|https?:\/\/generativelanguage\.googleapis\.com)/i

/** Items whose content is at the vendor, unless one of these members has it. */
const ITEMS: Readonly<Record<string, readonly string[]>> = {
  item_reference: [],
  reasoning: ['encrypted_content', 'content'],
  image_generation_call: ['result'],
  web_search_call: [],
  file_search_call: [],
  code_interpreter_call: [],
}

/** `shared` are ids that every account may use, because the catalogue says so. */
export function referencesIn(
  door: TextProtocolName,
  { text: sent, value }: JsonText,
  shared: readonly string[],
): Continued[] {
  if (!MAY_REFER.test(sent)) return [] // As nearly always.
  const seeker = new Seeker()
  if (door === 'openai-responses') {
    seeker.conversation(value.conversation)
    const prompt = isObject(value.prompt) ? text(value.prompt.id) : undefined
    if (prompt !== undefined) seeker.add(prompt, 'prompt.id', 'prompt')
    for (const list of ['input', 'items']) seeker.items(value[list], list)
  }
  seeker.seek(value, '')
  return seeker.found.filter(({ id }) => !shared.includes(id))
}

class Seeker {
  readonly found: Continued[] = []

  add(id: string, at: string, what: string): void {
    this.push({ id, unknown: unknownOf(what, at) })
  }

  conversation(given: unknown): void {
    const id = isObject(given) ? given.id : given
    if (typeof id === 'string') this.push({ id, unknown: conversationUnknown() })
  }

  items(given: unknown, list: string): void {
    if (!Array.isArray(given)) return
    given.forEach((item: unknown, i) => {
      if (!isObject(item)) return
      const { type, id } = item
      // What is nothing but an id is one, whatever it says that it is.
      const members = type === undefined && item.role === undefined ? [] : ITEMS[String(type)]
      if (typeof id === 'string' && members && !members.some((name) => isThere(item[name])))
        this.push({ id, unknown: itemUnknown(`${list}[${i}]`), native: true })
    })
    const asked = objects(given).flatMap(({ type, id }) => (type === 'mcp_approval_request' ? [id] : []))
    this.answered = new Set(asked)
  }

  /** Requests for approval that came with their answers. */
  private answered: ReadonlySet<unknown> = new Set()

  seek(value: unknown, at: string): void {
    if (Array.isArray(value)) for (const [i, entry] of value.entries()) this.seek(entry, `${at}[${i}]`)
    if (!isObject(value) || OWN_TYPES.has(String(value.type))) return
    const own = at === '' ? OWN : OWN_BELOW
    for (const name in value) {
      const member = value[name]
      if (typeof member === 'object' ? member === null : typeof member !== 'string') continue
      if (own.has(name)) continue
      const here = at === '' ? name : `${at}.${name}`
      this.look(name.replaceAll('_', '').toLowerCase(), member, here)
      if (typeof member === 'object') this.seek(member, here)
    }
  }

  private look(name: string, member: unknown, at: string): void {
    const isAddress = ADDRESSES.has(name) && typeof member === 'string'
    if (isAddress && BEHIND_CREDENTIAL.test(member)) this.add(member, at, 'file')
    const what = Object.hasOwn(NAMES, name) ? NAMES[name] : undefined
    if (what === undefined) return
    const ids = (Array.isArray(member) ? member : [isObject(member) ? member.id : member]).map(text)
    for (const id of ids) if (id !== undefined && !this.answered.has(id) && !isPublic(name, id)) this.add(id, at, what)
  }

  private push(one: Continued): void {
    if (this.found.length >= REFERENCES_MAX)
      throw invalid(`A request may refer to ${REFERENCES_MAX} things that a provider keeps.`)
    this.found.push(one)
  }
}

/** Skills that the vendors offer to all have names, and no ids. */
function isPublic(name: string, id: string): boolean {
  return name === 'skillid' && !id.startsWith('skill_')
}

function isThere(member: unknown): boolean {
  return Array.isArray(member) ? member.length > 0 : typeof member === 'string'
}

export function conversationUnknown(): Fault {
  const message =
    'Conversation not found: there is none with this id in this account, or its provider does not serve this model.'
  return new Fault('not_found', { message, param: 'conversation' })
}

function itemUnknown(at: string): Fault {
  const message = `Item not found: "${at}" refers to what a provider keeps, and nothing with this id is kept for this account. Send the item itself.`
  return new Fault('not_found', { message, param: at })
}

const INSTEAD: Readonly<Record<string, string>> = {
  file: 'Files of POST /v1/files are for batches, and no provider has them; send the file itself, or a public address of it.',
  recording: 'Send its text.',
}

function unknownOf(what: string, at: string): Fault {
  const instead = INSTEAD[what] ?? 'Ids at providers are not shared between accounts.'
  return invalid(`"${at}" refers to a ${what} that no provider keeps for this account. ${instead}`, at)
}

/** The ids by which an account may come back to a response: its own, those of its items and of the containers that it used. */
export function idsOfResponse(response: Json): string[] {
  const isKept = response.store === true || isObject(response.conversation)
  const items = objects(response.output)
  // Of what ran at the vendor it may know more than it says, whether or not it was asked to keep it.
  const named = isKept
    ? items
    : items.filter(({ type }) => typeof type === 'string' && type.endsWith('_call') && type in ITEMS)
  const conversation = isObject(response.conversation) ? response.conversation.id : undefined
  const own = isKept ? [response.id, conversation] : []
  const ids = [...own, ...named.map(({ id }) => id), ...items.map((item) => item.container_id)]
  return ids.filter((id) => typeof id === 'string').slice(0, REFERENCES_MAX)
}
