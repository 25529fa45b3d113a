// Estimates the size of a prompt before any vendor has counted it: the size of its text and media, and whether part of
// it is not in the request but stored, fetched or generated at the vendor.
import { isObject, type Json, objectOf, objects, text } from '../../kernel/json.ts'
import { words } from '../../kernel/words.ts'
import { JSON_INSTRUCTION } from './canonical.ts'
import { QUOTED } from './references.ts'

export interface PromptSize {
  /** The probable number of tokens of the request's own content. */
  readonly likely: number
  /** The maximum number of tokens, which the hold covers. */
  readonly most: number
  /** Part of the input is not in the request but stored or fetched, so only the model's context limits it. */
  readonly refers: boolean
  /** Tools at the vendor bring in more, once for each use. */
  readonly runs: boolean
  /**
   * The longest that the request asks the vendor to keep something in a cache for; `long` for a time that is not known.
   */
  readonly cached: 'not' | 'short' | 'long'
  /** The parts of `most` that are audio and images. */
  readonly sound: number
  readonly pictures: number
}

// A byte-level tokenizer has a token for each byte, and texts exist that need them all: digits with spaces, one letter
// a line, rare letters. So the bound of a text is its bytes; English takes a quarter of that.
const LIKELY_BYTES_PER_TOKEN = 4
/** The most that a vendor's template adds to a request: its own instructions, the date, the beginning of the answer. */
const REQUEST_TOKENS = 64
/** The tokens around a message: role, separators. */
const MESSAGE_TOKENS = 8
/** The most that a vendor adds to a request with tools, and for a tool that it defines itself (a shell, an editor). */
const TOOLS_TOKENS = 1_024
/** The most for one image, unless the model's traits say more, and for one in original size. */
const IMAGE_TOKENS = 5_000
const IMAGE_TOKENS_ORIGINAL = 16_000
/** A document, a video or an audio: a base amount, plus more by its size in base64 characters. */
const FILE_TOKENS = 4_000
/** Sound in a format with a bit rate: 8 kbit/s, the lowest, has 1,300 characters for the 32 tokens of a second. */
const SOUND_CHARS_PER_TOKEN = 8
const RATED = /^(?:wav|x-wav|mp3|mpeg|pcm16|l16)$/i
/** A PDF page has at least about 100 bytes and takes some 1,600 tokens as an image; compressed text is as dense. */
const DOCUMENT_TOKENS_PER_CHAR = 12

const IMAGES = new Set(['image', 'image_url', 'input_image', 'computer_screenshot', 'image_generation_call'])
const SOUNDS = new Set(['audio', 'audio_url', 'input_audio'])
const FILES = new Set([...words('file input_file document document_url video video_url input_video'), ...SOUNDS])
/** Types of items and blocks that refer to content at the vendor. */
const REFERENCES = new Set(
  words('item_reference container_upload file_search_call web_search_call code_interpreter_call'),
)
/** Members that refer to content stored at the vendor, wherever they appear. */
const REFERRING = new Set(['file_id', 'cached_content'])
/** Members that contain a caller's or a tool's own JSON, in which no name has a meaning to the vendor. */
const FREE = new Set([...QUOTED, 'input', 'input_examples', 'env'])
/** Members whose value alone stands in the prompt, within the tokens around it. */
const WRAPPERS = new Set(['role', 'type', 'content', 'text'])

/** Request fields that bring in content that is not in the request. */
const FIELDS = words(
  'previous_response_id conversation prompt thread mcp_servers container web_search_options cached_content',
)

/** Tools that the caller runs, so all their output comes with the next request. Any other type runs at the vendor. */
const LOCAL_TOOL =
  /^(?:function|custom|namespace|local_shell|apply_patch|(?:computer|bash|text_editor|memory|tool_search)(?:_.*)?)$/

/** What the answer's format adds to the prompt, including the instruction for vendors without a field for it. */
export function formatParts(format: unknown): readonly unknown[] {
  return [format, isObject(format) && format.type === 'json_object' ? JSON_INSTRUCTION : undefined]
}

interface Scale {
  /** The most tokens of an image. */
  readonly imageTokens?: number | undefined
  /** The most tokens of a text; absent: one for each byte. */
  readonly sizeOf?: (text: string) => number
}

/** `parts` are the parts of the request that become the prompt. The text is measured and never parsed. */
export function measurePrompt(parts: readonly unknown[], request: Json, scale: Scale = {}): PromptSize {
  const measure = new Measure(scale)
  if (isObject(request.cache_control)) measure.addCache(request.cache_control)
  for (const part of parts) if (part !== undefined && part !== null) measure.add(part, false)
  return {
    likely: Math.ceil(measure.bytes / LIKELY_BYTES_PER_TOKEN + measure.frames / 2 + measure.mediaLikely),
    most: Math.ceil(measure.bytes + measure.frames + measure.mediaMost),
    refers: measure.elsewhere || hasReference(request),
    runs: request.tools !== undefined && runsElsewhere(request),
    cached: measure.cached,
    sound: Math.ceil(measure.sound),
    pictures: measure.pictures,
  }
}

/** What vendors add to a whole request, at most. */
export function addedTokens({ tools, functions }: Json): number {
  if (tools === undefined && functions === undefined) return REQUEST_TOKENS
  const all = objects(tools)
  const theirs = all.filter(({ type }) => type !== undefined && type !== 'function' && type !== 'custom')
  return REQUEST_TOKENS + (all.length > 0 || Array.isArray(functions) ? TOOLS_TOKENS * (1 + theirs.length) : 0)
}

function hasReference(request: Json): boolean {
  for (const name of FIELDS) if (request[name] !== undefined && isReference(name, request[name])) return true
  return false
}

function isReference(name: string, value: unknown): boolean {
  if (value === null || (Array.isArray(value) && value.length === 0)) return false
  // A new thread has all its content in the request.
  return !(name === 'thread' && isObject(value) && value.type === 'create')
}

/** Google's tools that cost only tokens: pages and the results of code are read as input. */
const GOOGLES = /^(?:url_?context|code_?execution)$/i

/** Whether a tool runs at the vendor and reads what the request does not contain. */
export function runsElsewhere(holder: Json): boolean {
  return objects(holder.tools).some((tool) => {
    const { type } = tool
    if (type === undefined || type === null) return Object.keys(tool).some((name) => GOOGLES.test(name))
    if (type === 'shell') return !isObject(tool.environment) || tool.environment.type !== 'local'
    return typeof type !== 'string' || !LOCAL_TOOL.test(type) || runsElsewhere(tool)
  })
}

const ADDRESS = /^[a-z][a-z0-9+.-]{0,20}:/i
const DATA = new Set(['data', 'file_data', 'result'])
const ADDRESSED = new Set(['url', 'image_url', 'file_url', 'video_url', 'audio_url', 'file_id', 'id'])

/** An assistant's audio is stored at the vendor and referred to by its id. */
const hasId = (audio: unknown) => isObject(audio) && typeof audio.id === 'string'

class Measure {
  /** The bytes of text, or its tokens where those are counted. */
  bytes = 0
  /** The tokens around the text. */
  frames = 0
  mediaLikely = 0
  mediaMost = 0
  /** Parts of `mediaMost`. */
  sound = 0
  pictures = 0
  elsewhere = false
  cached: PromptSize['cached'] = 'not'

  private readonly imageTokens: number
  private readonly sizeOf: (text: string) => number

  constructor({ imageTokens = IMAGE_TOKENS, sizeOf = Buffer.byteLength }: Scale) {
    this.imageTokens = imageTokens
    this.sizeOf = sizeOf
  }

  /** `free`: no name in the value has a meaning to the vendor, so that all of it is text. */
  add(value: unknown, free: boolean): void {
    if (value === undefined) return
    if (typeof value === 'string') this.bytes += this.sizeOf(value)
    else if (free) this.bytes += this.sizeOf(JSON.stringify(value))
    else if (Array.isArray(value)) for (const entry of value) this.add(entry, false)
    else if (isObject(value)) this.addObject(value)
    else this.frames += String(value).length
  }

  private addObject(object: Json): void {
    const { type } = object
    if (typeof type === 'string' && IMAGES.has(type)) this.addImage(object)
    else if (typeof type === 'string' && FILES.has(type)) this.addFile(object, SOUNDS.has(type))
    else this.addMembers(object)
    // Messages have no type in some formats, so an object with a role is measured as a message as well, whatever its
    // type says.
    if (typeof type === 'string' && typeof object.role === 'string' && (IMAGES.has(type) || FILES.has(type)))
      this.addMembers(object)
  }

  private addMembers(object: Json): void {
    if (typeof object.type === 'string' && REFERENCES.has(object.type)) this.elsewhere = true
    this.frames += typeof object.role === 'string' ? MESSAGE_TOKENS : 2
    for (const name in object) {
      const member = object[name]
      if (member === null) continue
      if (!WRAPPERS.has(name)) this.bytes += name.length
      if (name === 'role' || name === 'type') continue
      if (name === 'cache_control' && isObject(member)) this.addCache(member)
      // The signature of a thought repeats it, unless its text was left out.
      if (name === 'signature' && typeof object.thinking === 'string' && object.thinking !== '') continue
      if (REFERRING.has(name) ? typeof member === 'string' : name === 'audio' && hasId(member)) this.elsewhere = true
      this.add(member, FREE.has(name))
    }
  }

  addCache({ ttl }: Json): void {
    if (ttl !== undefined && ttl !== null && ttl !== '5m') this.cached = 'long'
    else if (this.cached === 'not') this.cached = 'short'
  }

  private addImage(part: Json): void {
    const { chars, foreign } = this.lookInto(part)
    // Some vendors accept a document where the format has only images.
    if (foreign) this.addData(chars, DOCUMENT_TOKENS_PER_CHAR)
    else {
      const { detail } = isObject(part.image_url) ? part.image_url : part
      const most = detail === 'original' ? Math.max(IMAGE_TOKENS_ORIGINAL, this.imageTokens) : this.imageTokens
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
      const format = text(part.format) ?? text(objectOf(part.input_audio).format) ?? ''
      if (sound) this.sound += this.addData(chars, RATED.test(format) ? 1 / SOUND_CHARS_PER_TOKEN : 1)
      else this.addData(chars, DOCUMENT_TOKENS_PER_CHAR)
    }
  }

  private addData(chars: number, tokensPerChar: number): number {
    this.mediaLikely += (FILE_TOKENS + chars / SOUND_CHARS_PER_TOKEN) / 2
    const most = FILE_TOKENS + chars * tokensPerChar
    this.mediaMost += most
    return most
  }

  /**
   * What a media part contains: characters of data, or an address or id of content elsewhere. The caller chooses the
   * type, so only the members that hold media data are not measured as text.
   */
  private lookInto(part: Json) {
    // `foreign`: data that is not an image.
    const found = { chars: 0, refers: false, foreign: false }
    for (const name in part) {
      const member = part[name]
      if (typeof member === 'string') this.lookAt(name, member, found)
      else if (isObject(member) && !FREE.has(name)) {
        if (name === 'cache_control') this.addCache(member)
        const { chars, refers, foreign } = this.lookInto(member)
        found.chars += chars
        found.refers ||= refers
        found.foreign ||= foreign
      } else if (typeof member === 'object') this.add(member, FREE.has(name))
    }
    return found
  }

  private lookAt(name: string, value: string, found: { chars: number; refers: boolean; foreign: boolean }): void {
    const inline = /^data:/i.test(value)
    const isPlace = DATA.has(name) || ADDRESSED.has(name)
    if (inline || (DATA.has(name) && !ADDRESS.test(value))) found.chars += value.length
    else if (isPlace) found.refers = true
    if (!isPlace) this.bytes += this.sizeOf(value)
    if (inline && !/^data:image\//i.test(value)) found.foreign = true
  }
}
