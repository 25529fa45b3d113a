// How large a prompt can be, before any vendor has counted it: what its text and media come to, and whether some of it is
// not in the request at all but kept, fetched or made at the vendor.
import { isObject, type Json, objectOf, objects } from '../check.ts'
import { JSON_INSTRUCTION } from './canonical.ts'
import { QUOTED } from './references.ts'

export interface PromptSize {
  /** What the request's own content probably comes to. */
  readonly likely: number
  /** The most that it can come to: what a hold covers. */
  readonly most: number
  /** Some of the input is elsewhere: nothing but the model's context bounds it. */
  readonly elsewhere: boolean
  /** Of `most`, what is sound, and what is pictures. */
  readonly sound: number
  readonly pictures: number
}

// Tokenizers differ; two bytes of UTF-8 a token is above what they need for any natural language and for code (English
// takes about four), so that a hold made with it covers the prompt.
const TEXT_BYTES_PER_TOKEN = 2
/** The frame of a message: role, separators. */
const MESSAGE_TOKENS = 8
/** The largest that vendors charge for one picture, and for one in its original size. */
const IMAGE_TOKENS = 5_000
const IMAGE_TOKENS_ORIGINAL = 16_000
/** A document, a film or a sound: something to start with, and more by its size in base64 characters. */
const FILE_TOKENS = 4_000
const FILE_CHARS_PER_TOKEN = 8
/** A page of a PDF takes about 100 bytes at least and some 1,600 tokens as a picture; compressed text is as dense. */
const DOCUMENT_TOKENS_PER_CHAR = 12

const IMAGES = new Set(['image', 'image_url', 'input_image', 'computer_screenshot', 'image_generation_call'])
const SOUNDS = new Set(['audio', 'audio_url', 'input_audio'])
const FILES = new Set([
  'file',
  'input_file',
  'document',
  'document_url',
  'video',
  'video_url',
  'input_video',
  ...SOUNDS,
])
/** Items and blocks that stand for content at the vendor. */
const REFERENCES = new Set([
  'item_reference',
  'container_upload',
  'file_search_call',
  'web_search_call',
  'code_interpreter_call',
])
/** Members that say what is kept at the vendor, wherever they stand. */
const REFERRING = new Set(['file_id', 'cached_content'])
/** Members that hold a caller's or a tool's own JSON, in which no name means anything to the vendor. */
const FREE = new Set([...QUOTED, 'input'])

/** Request fields that bring in what is not in the request. */
const FIELDS = [
  'previous_response_id',
  'conversation',
  'prompt',
  'thread',
  'mcp_servers',
  'container',
  'web_search_options',
  'cached_content',
]

/** Tools that the caller runs, so that all they say comes in the next request. Any other type runs at the vendor. */
const LOCAL_TOOL =
  /^(?:function|custom|namespace|local_shell|apply_patch|(?:computer|bash|text_editor|memory|tool_search)(?:_.*)?)$/

/** What the answer's format adds to the prompt, with the words that ask for it where a vendor has no field for that. */
export function formatParts(format: unknown): readonly unknown[] {
  return [format, isObject(format) && format.type === 'json_object' ? JSON_INSTRUCTION : undefined]
}

/** `parts` are those of the request that become the prompt. The text is measured, never read. */
export function measurePrompt(parts: readonly unknown[], request: Json): PromptSize {
  const measure = new Measure()
  for (const part of parts) if (part !== undefined && part !== null) measure.add(part, false)
  const elsewhere =
    measure.elsewhere || FIELDS.some((name) => isReference(name, request[name])) || runsElsewhere(request)
  const text = measure.bytes / TEXT_BYTES_PER_TOKEN + measure.frames
  return {
    likely: Math.ceil(text / 2 + measure.mediaLikely),
    most: Math.ceil(text + measure.mediaMost),
    elsewhere,
    sound: Math.ceil(measure.sound),
    pictures: measure.pictures,
  }
}

function isReference(name: string, value: unknown): boolean {
  if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) return false
  // A new thread has all its content in the request.
  return !(name === 'thread' && isObject(value) && value.type === 'create')
}

function runsElsewhere(holder: Json): boolean {
  return objects(holder.tools).some((tool) => {
    const { type } = tool
    if (type === undefined || type === null) return false
    if (type === 'shell') return !isObject(tool.environment) || tool.environment.type !== 'local'
    return typeof type !== 'string' || !LOCAL_TOOL.test(type) || runsElsewhere(tool)
  })
}

const ADDRESS = /^[a-z][a-z0-9+.-]{0,20}:/i
const DATA = new Set(['data', 'file_data', 'result'])
const ADDRESSED = new Set(['url', 'image_url', 'file_url', 'video_url', 'audio_url', 'file_id', 'id'])

interface Found {
  chars: number
  refers: boolean
  /** Data of another kind than a picture. */
  foreign: boolean
}

class Measure {
  /** Of text. */
  bytes = 0
  /** Tokens around the text. */
  frames = 0
  mediaLikely = 0
  mediaMost = 0
  /** Of `mediaMost`. */
  sound = 0
  pictures = 0
  elsewhere = false

  /** `free`: nothing in the value has a meaning of its own. */
  add(value: unknown, free: boolean): void {
    if (value === undefined) return
    if (typeof value === 'string') this.bytes += Buffer.byteLength(value)
    else if (Array.isArray(value)) for (const entry of value) this.add(entry, free)
    else if (isObject(value)) this.addObject(value, free)
    else {
      this.frames += 1
      // A long number is many tokens.
      if (free) this.bytes += String(value).length
    }
  }

  /** Of a caller's own JSON every name and every value is text to the vendor. */
  private addFree(object: Json): void {
    this.frames += 2
    for (const name in object) {
      this.bytes += Buffer.byteLength(name)
      this.add(object[name], true)
    }
  }

  private addObject(object: Json, free: boolean): void {
    const { type } = object
    if (free) this.addFree(object)
    else if (typeof type === 'string' && IMAGES.has(type)) this.addImage(object)
    else if (typeof type === 'string' && FILES.has(type)) this.addFile(object, SOUNDS.has(type))
    else this.addMembers(object)
    // A message has no type in some formats, and is then read as one whatever it says.
    if (!free && typeof type === 'string' && typeof object.role === 'string' && (IMAGES.has(type) || FILES.has(type)))
      this.addMembers(object)
  }

  private addMembers(object: Json): void {
    if (typeof object.type === 'string' && REFERENCES.has(object.type)) this.elsewhere = true
    this.frames += typeof object.role === 'string' ? MESSAGE_TOKENS : 2
    for (const name in object) {
      const member = object[name]
      if (name === 'role' || name === 'type' || member === null) continue
      // The signature of a thought repeats it, unless its text was left out.
      if (name === 'signature' && typeof object.thinking === 'string' && object.thinking !== '') continue
      if (this.refers(name, member)) this.elsewhere = true
      this.add(member, FREE.has(name))
      if (typeof member === 'object') this.bytes += name.length
    }
  }

  private refers(name: string, member: unknown): boolean {
    if (REFERRING.has(name)) return typeof member === 'string'
    // What an assistant said aloud is kept at the vendor, and named by its id.
    return name === 'audio' && isObject(member) && typeof member.id === 'string'
  }

  private addImage(part: Json): void {
    const { chars, foreign } = this.lookInto(part)
    // Some vendors take a document where the format has a place for pictures only.
    if (foreign) this.addData(chars, false)
    else {
      const { detail } = isObject(part.image_url) ? part.image_url : part
      const most = detail === 'original' ? IMAGE_TOKENS_ORIGINAL : IMAGE_TOKENS
      this.mediaLikely += most / 2
      this.mediaMost += most
      this.pictures += most
    }
  }

  private addFile(part: Json, sound: boolean): void {
    const source = objectOf(part.type === 'document' ? part.source : undefined)
    // A document of text or of blocks is what it says.
    if (source.type === 'text') this.add(Object.values(part), true)
    else if (source.type === 'content') {
      const { type: _, source: __, ...rest } = part
      this.add([rest, source.content], false)
    } else {
      const { chars, refers } = this.lookInto(part)
      if (refers || chars === 0) this.elsewhere = true
      this.addData(chars, sound)
    }
  }

  private addData(chars: number, sound: boolean): void {
    this.mediaLikely += (FILE_TOKENS + chars / FILE_CHARS_PER_TOKEN) / 2
    const most = FILE_TOKENS + (sound ? chars / FILE_CHARS_PER_TOKEN : chars * DOCUMENT_TOKENS_PER_CHAR)
    this.mediaMost += most
    if (sound) this.sound += most
  }

  /**
   * What a part of media holds: characters of data, an address or an id of content elsewhere. A type is what the caller says
   * it is: only where media have their data is a text not taken for text.
   */
  private lookInto(part: Json): Found {
    const found = { chars: 0, refers: false, foreign: false }
    for (const name in part) {
      const member = part[name]
      if (typeof member === 'string') this.lookAt(name, member, found)
      else if (isObject(member) && !FREE.has(name)) {
        const { chars, refers, foreign } = this.lookInto(member)
        found.chars += chars
        found.refers ||= refers
        found.foreign ||= foreign
      } else if (typeof member === 'object') this.add(member, FREE.has(name))
    }
    return found
  }

  private lookAt(name: string, text: string, found: Found): void {
    const inline = /^data:/i.test(text)
    const isPlace = DATA.has(name) || ADDRESSED.has(name)
    if (inline || (DATA.has(name) && !ADDRESS.test(text))) found.chars += text.length
    else if (isPlace) found.refers = true
    if (!isPlace) this.bytes += Buffer.byteLength(text)
    if (inline && !/^data:image\//i.test(text)) found.foreign = true
  }
}
