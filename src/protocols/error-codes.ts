// What vendors call the errors that callers can do something about, and what SDKs and frameworks look for: one table for all
// formats. A code that is not in it stays here: it may be anything, also something that nobody should read.

/** Codes that go to callers under their own names. */
const CODES: ReadonlySet<string> = new Set([
  'context_length_exceeded',
  // What the vendor does not want to write about.
  ...['content_policy_violation', 'content_filter', 'moderation_blocked', 'invalid_prompt', 'cyber_policy'],
  // Pictures and files.
  ...['invalid_image', 'invalid_image_format', 'invalid_base64_image', 'invalid_image_url', 'invalid_image_mode'],
  ...['image_too_large', 'image_too_small', 'image_parse_error', 'image_file_too_large', 'image_file_not_found'],
  ...['image_content_policy_violation', 'unsupported_image_media_type', 'empty_image_file', 'failed_to_download_image'],
  ...['unsupported_file', 'file_not_found', 'invalid_file'],
  // Parameters.
  ...['unsupported_parameter', 'unknown_parameter', 'missing_required_parameter', 'unsupported_value', 'invalid_value'],
  ...['invalid_type', 'invalid_json_schema', 'invalid_schema', 'invalid_function_parameters', 'duplicate_value'],
  ...['string_above_max_length', 'string_below_min_length', 'array_above_max_length', 'array_below_min_length'],
  ...['integer_above_max_value', 'integer_below_min_value', 'decimal_above_max_value', 'decimal_below_min_value'],
  // Conversations that live at the vendor.
  ...['previous_response_not_found', 'invalid_encrypted_content', 'conversation_locked', 'thread_unsupported_request'],
])

/** Other names for some of them. */
const ALIASES: Readonly<Record<string, string>> = {
  context_window_exceeded: 'context_length_exceeded',
  model_context_window_exceeded: 'context_length_exceeded',
  tokens_limit_reached: 'context_length_exceeded',
  content_policy: 'content_policy_violation',
  responsibleaipolicyviolation: 'content_filter',
  data_inspection_failed: 'content_filter',
  inputtextsensitivecontentdetected: 'content_policy_violation',
  inputimagesensitivecontentdetected: 'content_policy_violation',
  unsupported_media_type: 'unsupported_image_media_type',
}

/** How vendors put it that give no code. */
const SAYINGS: readonly (readonly [RegExp, string])[] = [
  [
    /prompt is too long|maximum context length|context[ _](?:length|window)|input is too long|too many (?:input )?tokens/i,
    'context_length_exceeded',
  ],
  [/content (?:management |filtering |usage )?policy|content exists risk|safety system/i, 'content_policy_violation'],
  [/could not process image|(?:invalid|unsupported) image|image (?:is|was) (?:invalid|not valid)/i, 'invalid_image'],
]

/** Our own account with the vendor is empty. */
const ACCOUNT_CODES =
  /insufficient_?(?:quota|balance|funds|credit)|billing|exceeded_current_quota|quotaexceeded|arrears/
const ACCOUNT_SAYINGS =
  /credit balance is too low|insufficient (?:balance|quota|credit|funds)|account .{0,80}suspended/i

const MODEL_CODES = /\b(?:model_not_found|unknown_model|invalid_model|model_not_exist\w*|invalidendpointormodel\S*)/
const MODEL_SAYINGS =
  /\bmodel\b.{0,60}(?:not exist|not found|no access|not have access)|(?:not found the|no such|unknown|invalid|not a valid) model\b/i
const MODEL_ONLY = /^model(?:: \S{1,200}$| not exist)/i

/** The code for callers; undefined when the vendor gave none that we know. */
export function knownCode(words: readonly string[], message: string): string | undefined {
  for (const word of words) {
    const code = word.toLowerCase()
    if (CODES.has(code)) return code
    if (Object.hasOwn(ALIASES, code)) return ALIASES[code]
  }
  return SAYINGS.find(([pattern]) => pattern.test(message))?.[1]
}

/** `byWords`: also by what it says, where a status does not already tell another story. */
export function isOurAccount(words: readonly string[], message: string, byWords: boolean): boolean {
  return ACCOUNT_CODES.test(words.join(' ').toLowerCase()) || (byWords && ACCOUNT_SAYINGS.test(message))
}

/** Whether the vendor does not know the model that the catalog names. */
export function isUnknownModel(words: readonly string[], message: string, model?: string): boolean {
  if (MODEL_CODES.test(words.join(' ').toLowerCase()) || MODEL_ONLY.test(message)) return true
  // What it says of the one that we asked for; a file that is not found is another matter.
  return (
    model !== undefined && message.includes(model) && MODEL_SAYINGS.test(message.slice(0, 2_000).replace(model, ''))
  )
}
