// Estimates the size of a prompt before any vendor has counted it: the size of its text and media, and whether part of it is not in the
// request but stored, fetched or generated at the vendor.
import { isObject, type Json, objectOf, objects } from '../check.ts'
import { JSON_INSTRUCTION } from './canonical.ts'
import { QUOTED } from './references.ts'

export interface PromptSize {
  /** The probable number of tokens of the request's own content. */
  readonly likely: number
  /** The maximum number of tokens, which the hold covers. */
  readonly most: number
  /** Part of the input is not in the request, so only the model's context limits it. */
  readonly elsewhere: boolean
  /** The parts of `most` that are audio and images. */
  readonly sound: number
  readonly pictures: number
}

// Tokenizers differ. Two bytes of UTF-8 per token is more than enough for any natural language and for code (English takes about four), so a
// hold based on it covers the prompt.
const TEXT_BYTES_PER_TOKEN = 2
/** The tokens around a message: role, separators. */
const MESSAGE_TOKENS = 8
/** The most that vendors charge for one image, and for one in original size. */
const IMAGE_TOKENS = 5_000
const IMAGE_TOKENS_ORIGINAL = 16_000
/** A document, a video or an audio: a base amount, plus more by its size in base64 characters. */
const FILE_TOKENS = 4_000
const FILE_CHARS_PER_TOKEN = 8
/** A PDF page has at least about 100 bytes and takes some 1,600 tokens as an image; compressed text is as dense. */
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
/** Types of items and blocks that refer to content at the vendor. */
const REFERENCES = new Set([
  'item_reference',
  'container_upload',
  'file_search_call',
  'web_search_call',
  'code_interpreter_call',
])
/** Members that refer to content stored at the vendor, wherever they appear. */
const REFERRING = new Set(['file_id', 'cached_content'])
/** Members that contain a caller's or a tool's own JSON, in which no name has a meaning to the vendor. */
const FREE = new Set([...QUOTED, 'input'])

/** Request fields that bring in content that is not in the request. */
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

/** Tools that the caller runs, so all their output comes with the next request. Any other type runs at the vendor. */
const LOCAL_TOOL =
  /^(?:function|custom|namespace|local_shell|apply_patch|(?:computer|bash|text_editor|memory|tool_search)(?:_.*)?)$/

/** What the answer's format adds to the prompt, including the instruction for vendors without a field for it. */
export function formatParts(format: unknown): readonly unknown[] {
  return [format, isObject(format) && format.type === 'json_object' ? JSON_INSTRUCTION : undefined]
}

/** `parts` are the parts of the request that become the prompt. The text is measured and never parsed. */
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
  /** Data that is not an image. */
  foreign: boolean
}

class Measure {
  /** The bytes of text. */
  bytes = 0
  /** The tokens around the text. */
  frames = 0
  mediaLikely = 0
  mediaMost = 0
  /** Parts of `mediaMost`. */
  sound = 0
  pictures = 0
  elsewhere = false

  /** `free`: no name in the value has a meaning to the vendor. */
  add(value: unknown, free: boolean): void {
    if (value === undefined) return
    if (typeof value === 'string') this.bytes += Buffer.byteLength(value)
    else if (Array.isArray(value)) for (const entry of value) this.add(entry, free)
    else if (isObject(value)) this.addObject(value, free)
    else {
      this.frames += 1
      // A long number takes many tokens.
      if (free) this.bytes += String(value).length
    }
  }

  /** In a caller's own JSON every name and every value is text to the vendor. */
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
    // Messages have no type in some formats, so an object with a role is measured as a message as well, whatever its type says.
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
    // An assistant's audio is stored at the vendor and referred to by its id.
    return name === 'audio' && isObject(member) && typeof member.id === 'string'
  }

  private addImage(part: Json): void {
    const { chars, foreign } = this.lookInto(part)
    // Some vendors accept a document where the format has only images.
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
    // A document of text or of blocks is measured by its content.
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
   * What a media part contains: characters of data, or an address or id of content elsewhere. The caller chooses the type, so only the members
   * that hold media data are not measured as text.
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
