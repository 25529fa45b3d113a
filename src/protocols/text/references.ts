// Finds ids in a request by which a vendor would look up stored objects: answers, items, conversations, files,
// containers. All accounts share the vendor's credential, so such an id is allowed only for the account that owns the
// object.

import { Fault, invalid } from '../../kernel/fault.ts'
import { isObject, type Json, type JsonText, objects, text } from '../../kernel/json.ts'
import { words } from '../../kernel/words.ts'
import type { ClientFormatName } from '../../meter/kind.ts'
import { mustBe, wrong } from '../check.ts'
import type { Continued } from '../protocol.ts'

const REFERENCES_MAX = 500

/**
 * A quick test of the text for members that may refer to something, for client formats in which only a member can;
 * Responses items must be examined in full. It is one pattern that begins with a quote, because bodies are long.
 */
const MAY_REFER =
  /"(?:file_?ids?|vector_?store_?ids?|container|container_?id|skill_?id|cached_?content|approval_?request_?id|audio|(?:(?:image|file|video|audio)_?)?ur[il])"/i

/** Members with a tool's own JSON or with quotes of an answer: names in there have no meaning to the vendor. */
export const QUOTED = ['arguments', 'input_schema', 'parameters', 'schema', 'annotations', 'citations', 'results']
/** The same, plus the caller's own notes: vendors look up no ids in these. */
const OWN = new Set([...QUOTED, 'metadata', 'labels'])
const OWN_BELOW = new Set([...OWN, 'input', 'args', 'response'])
/**
 * Files created by code in an Anthropic container, as listed in an answer: the type of the list, and of its entries.
 */
const MADE: Readonly<Record<string, string>> = {
  code_execution_result: 'code_execution_output',
  bash_code_execution_result: 'bash_code_execution_output',
}

/** What a member refers to, by its name without underscores and in lower case. */
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
/** Addresses that a vendor reads with the shared credential. */
const BEHIND_CREDENTIAL = /^\s*(?:gs:|s3:|files\/|https?:\/\/generativelanguage\.googleapis\.com)/i

/**
 * For each item type, the member that makes an item complete; without it the vendor looks the item up by its id. Items
 * of other types are always looked up. So are thoughts in plain text: the vendor uses the id, whatever the caller sends
 * with it.
 */
const WHOLE: ReadonlyMap<unknown, string> = new Map(
  Object.entries({
    content: 'message',
    encrypted_content: 'reasoning compaction',
    result: 'image_generation_call',
    call_id: `function_call function_call_output custom_tool_call custom_tool_call_output computer_call computer_call_output
      shell_call shell_call_output apply_patch_call apply_patch_call_output local_shell_call`,
    output: 'local_shell_call_output',
    tools: 'mcp_list_tools',
    name: 'mcp_call mcp_approval_request',
    approval_request_id: 'mcp_approval_response',
  }).flatMap(([member, types]) => words(types).map((type) => [type, member] as const)),
)

function isWhole(item: Json): boolean {
  // An item without type and role is only an id, whatever else it contains.
  const type = item.type ?? (item.role === undefined || item.role === null ? '' : 'message')
  const needed = WHOLE.get(type)
  const member = needed === undefined ? undefined : item[needed]
  return Array.isArray(member) ? member.length > 0 : typeof member === 'string' && member !== ''
}

/** `shared` are ids that the catalog allows for every account. */
export function referencesIn(
  clientFormat: ClientFormatName,
  { text: sent, value }: JsonText,
  shared: readonly string[],
): Continued[] {
  // The usual case. Escaped text may hide any name, so it is examined.
  if (clientFormat !== 'openai-responses' && !sent.includes('\\u') && !MAY_REFER.test(sent)) return []
  const seeker = new Seeker(clientFormat)
  if (clientFormat === 'openai-responses') {
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
  private readonly clientFormat: ClientFormatName
  /** Approval requests that are included in full with their answers. */
  private asked: ReadonlySet<unknown> = new Set()

  constructor(clientFormat: ClientFormatName) {
    this.clientFormat = clientFormat
  }

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
      const at = `${list}[${i}]`
      if (!isObject(item)) throw mustBe(at, 'an object', item)
      for (const name of ['type', 'id'])
        if (typeof (item[name] ?? '') !== 'string') throw mustBe(`${at}.${name}`, 'a string', item[name])
      const id = text(item.id) ?? ''
      if (id !== '' && !isWhole(item)) this.push({ id, unknown: itemUnknown(at), native: true })
    })
    const asked = objects(given).filter((item) => item.type === 'mcp_approval_request' && isWhole(item))
    this.asked = new Set(asked.map(({ id }) => id))
  }

  /** `made` is the type of entries that the vendor itself listed here. */
  seek(value: unknown, at: string, made?: string): void {
    if (Array.isArray(value)) for (const [i, entry] of value.entries()) this.seek(entry, `${at}[${i}]`, made)
    if (!isObject(value)) return
    const own = at === '' ? OWN : OWN_BELOW
    const isMade = made !== undefined && value.type === made
    const lists =
      this.clientFormat === 'anthropic-messages' && typeof value.type === 'string' ? MADE[value.type] : undefined
    for (const name in value) {
      const member = value[name]
      if (typeof member === 'object' ? member === null : typeof member !== 'string') continue
      if (own.has(name) || (isMade && name === 'file_id' && typeof member === 'string')) continue
      const here = at === '' ? name : `${at}.${name}`
      this.look(name.replaceAll('_', '').toLowerCase(), member, here)
      if (typeof member === 'object') this.seek(member, here, name === 'content' ? lists : undefined)
    }
  }

  private look(name: string, member: unknown, at: string): void {
    const isAddress = ADDRESSES.has(name) && typeof member === 'string'
    if (isAddress && BEHIND_CREDENTIAL.test(member)) this.add(member, at, 'file')
    const what = Object.hasOwn(NAMES, name) ? NAMES[name] : undefined
    if (what === undefined) return
    const ids = (Array.isArray(member) ? member : [isObject(member) ? member.id : member]).map(text)
    for (const id of ids) if (id !== undefined && !this.isFree(name, id)) this.add(id, at, what)
  }

  private isFree(name: string, id: string): boolean {
    // Skills that vendors offer to everybody have names instead of ids.
    return name === 'skillid' ? !id.startsWith('skill_') : name === 'approvalrequestid' && this.asked.has(id)
  }

  private push(one: Continued): void {
    if (this.found.length >= REFERENCES_MAX)
      throw invalid(`A request may refer to ${REFERENCES_MAX} things that a vendor keeps.`)
    this.found.push(one)
  }
}

export function conversationUnknown(): Fault {
  const message =
    'Conversation not found: there is none with this id in this account, or its vendor does not serve this model.'
  return new Fault('not_found', { message, param: 'conversation' })
}

function itemUnknown(at: string): Fault {
  const message = `Item not found: "${at}" refers to what a vendor keeps, and nothing with this id is kept for this account. Send the item itself, without this id.`
  return new Fault('not_found', { message, param: at })
}

const INSTEAD: Readonly<Record<string, string>> = {
  file: 'Files of POST /v1/files are for batches, and no vendor has them; send the file itself, or a public address of it.',
  recording: 'Send its text.',
}

function unknownOf(what: string, at: string): Fault {
  const instead = INSTEAD[what] ?? 'Ids at vendors are not shared between accounts.'
  return wrong(at, `refers to a ${what} that no vendor keeps for this account. ${instead}`)
}

/**
 * The ids by which an account may later refer to a response: its own, those of its items and of the containers it used.
 */
export function idsOfResponse(response: Json): string[] {
  const isKept = response.store === true || isObject(response.conversation)
  const items = objects(response.output)
  const named = isKept ? items : items.filter(isNeeded)
  const conversation = isObject(response.conversation) ? response.conversation.id : undefined
  const own = isKept ? [response.id, conversation] : []
  const ids = [...own, ...named.map(({ id }) => id), ...items.map((item) => item.container_id)]
  return ids.filter((id) => typeof id === 'string').slice(0, REFERENCES_MAX)
}

/**
 * The vendor may know more about a tool's item than it contains, whether or not it was asked to store it. A thought
 * that was not stored is lost.
 */
function isNeeded(item: Json): boolean {
  if (item.type === 'reasoning') return !isWhole(item) && objects(item.content).length > 0
  return item.type === 'image_generation_call' || !isWhole(item)
}
