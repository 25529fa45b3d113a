// What the endpoints of this format refuse before any vendor is called.
import type { TextTraits } from '../../../catalog/traits.ts'
import { invalid } from '../../../kernel/fault.ts'
import { readJson } from '../../../kernel/json.ts'
import { Fields, isObject, type Json, mustBe, shown } from '../../check.ts'
import type { CheckedAsk } from '../format.ts'
import { hostedRefusal } from '../vendor-side.ts'
import { inSnakeCase, member, objectAt } from './member.ts'

const ROLES = ['user', 'model', 'function']
/** What a part is; it is one of them. */
const KINDS = ['text', 'inlineData', 'fileData', 'functionCall', 'functionResponse']
const CANDIDATES_MAX = 8
/** Tools that run at the vendor, by the name that a price or a permission has for them. */
const HOSTED: Readonly<Record<string, string>> = {
  googleSearch: 'web_search',
  googleSearchRetrieval: 'web_search',
  enterpriseWebSearch: 'web_search',
  urlContext: 'url_context',
  codeExecution: 'code_execution',
  fileSearch: 'file_search',
  googleMaps: 'google_maps',
  retrieval: 'file_search',
  mcpServers: 'mcp',
}
/** Run by the caller. */
const LOCAL = ['functionDeclarations', 'computerUse']

export function checkGemini(fields: Fields, traits: TextTraits): CheckedAsk {
  const value = fields.json.value
  checkSpelling(value, '')
  checkGeminiPrompt(value)
  checkTools(member(value, 'tools'), traits)
  const config = below(fields, 'generationConfig')
  const named = (name: string) => (config.json.member(name) ? name : inSnakeCase(name))
  for (const name of ['temperature', 'topP', 'topK', 'presencePenalty', 'frequencyPenalty']) config.number(named(name))
  config.integer('seed', Number.MIN_SAFE_INTEGER)
  const tokensMax = config.integer(named('maxOutputTokens'), 1)
  const n = config.integer(named('candidateCount'), 1) ?? 1
  const nField = 'candidateCount'
  if (n > CANDIDATES_MAX) throw invalid(`"${nField}" must be at most ${CANDIDATES_MAX}, not ${n}.`, nField)
  config.strings(named('stopSequences'))
  const thinking = below(config, named('thinkingConfig'))
  thinking.integer(thinking.json.member('thinkingBudget') ? 'thinkingBudget' : 'thinking_budget', -1)
  checkModalities(member(config.json.value, 'responseModalities'))
  for (const name of ['toolConfig', 'labels']) checkedObject(value, name)
  for (const name of ['safetySettings', 'safety_settings']) fields.list(name)
  const alt = fields.get('alt') ?? 'json'
  if (alt !== 'json' && alt !== 'sse') throw mustBe('alt', 'sse or json', alt)
  if (member(value, 'cachedContent') !== undefined)
    throw invalid(
      '"cachedContent" refers to what a vendor keeps, which is not shared between accounts here; send the content itself.',
      'cachedContent',
    )
  return {
    stream: fields.boolean('stream') ?? false,
    includeUsage: true,
    n,
    nField,
    tokensMax,
    hasTools: (fields.list('tools')?.length ?? 0) > 0,
  }
}

const NOTHING = readJson(Buffer.from('{}'))

/** The members of an object inside, as they were written. */
function below(fields: Fields, name: string): Fields {
  const named = fields.json.member(name) ? name : inSnakeCase(name)
  fields.object(named)
  const span = fields.json.member(named)
  return new Fields(span && fields.get(named) ? readJson(Buffer.from(fields.json.text.slice(...span))) : NOTHING)
}

/** The caller's own names, which may be alike. */
const OWN = /^(?:args|response|parameters|labels|(?:parameters|response)_?(?:json_?)?schema)$/i

/** With both spellings of one name, which of them counts would be the vendor's choice. */
export function checkSpelling(value: unknown, at: string): void {
  if (Array.isArray(value)) for (const [i, entry] of value.entries()) checkSpelling(entry, `${at}[${i}]`)
  if (!isObject(value)) return
  const before = at === '' ? '' : `${at}.`
  for (const name of Object.keys(value)) {
    const other = inSnakeCase(name)
    if (other !== name && Object.hasOwn(value, other))
      throw invalid(`"${before}${other}" is "${name}" in another spelling: send one of them.`, `${before}${other}`)
    if (!OWN.test(name)) checkSpelling(value[name], before + name)
  }
}

/** The part that countTokens shares. */
export function checkGeminiPrompt(value: Json): void {
  const contents = value.contents
  if (contents === undefined || contents === null) throw invalid('"contents" is required.', 'contents')
  if (!Array.isArray(contents)) throw mustBe('contents', 'an array of objects', contents)
  if (contents.length === 0) throw invalid('"contents" must hold at least one content.', 'contents')
  contents.forEach((content, i) => {
    if (!isObject(content)) throw mustBe(`contents[${i}]`, 'an object', content)
    const role = content.role ?? 'user'
    if (typeof role !== 'string' || !ROLES.includes(role))
      throw mustBe(`contents[${i}].role`, 'one of user, model', role)
    checkParts(content.parts, `contents[${i}].parts`)
  })
  const system = member(value, 'systemInstruction')
  if (system === undefined) return
  if (!isObject(system)) throw mustBe('systemInstruction', 'an object with "parts"', system)
  checkParts(system.parts, 'systemInstruction.parts')
}

export function checkParts(parts: unknown, at: string): void {
  if (!Array.isArray(parts)) throw mustBe(at, 'an array of objects', parts)
  parts.forEach((part, j) => {
    const here = `${at}[${j}]`
    if (!isObject(part)) throw mustBe(here, 'an object', part)
    if (part.text !== undefined && part.text !== null && typeof part.text !== 'string')
      throw mustBe(`${here}.text`, 'a string', part.text)
    const kinds = KINDS.filter((name) => member(part, name) !== undefined)
    if (kinds.length > 1)
      throw invalid(`"${here}" must be one of ${KINDS.join(', ')}, not ${kinds.join(' and ')} at once.`, here)
    for (const name of ['inlineData', 'fileData', 'functionCall', 'functionResponse'])
      checkedObject(part, name, `${here}.`)
    const data = objectAt(part, 'inlineData')
    if (Object.keys(data).length > 0 && (typeof data.data !== 'string' || typeof member(data, 'mimeType') !== 'string'))
      throw invalid(`"${here}.inlineData" must have "mimeType" and "data", both strings.`, `${here}.inlineData`)
    for (const name of ['functionCall', 'functionResponse'])
      if (member(part, name) && typeof objectAt(part, name).name !== 'string')
        throw invalid(`"${here}.${name}.name" must be a string.`, `${here}.${name}.name`)
  })
}

function checkTools(tools: unknown, traits: TextTraits): void {
  if (tools === undefined) return
  if (!Array.isArray(tools)) throw mustBe('tools', 'an array of objects', tools)
  tools.forEach((tool, i) => {
    if (!isObject(tool)) throw mustBe(`tools[${i}]`, 'an object', tool)
    const declared = member(tool, 'functionDeclarations')
    if (declared !== undefined && !Array.isArray(declared))
      throw mustBe(`tools[${i}].functionDeclarations`, 'an array of objects', declared)
    declared?.forEach((entry, j) => {
      const at = `tools[${i}].functionDeclarations[${j}].name`
      if (!isObject(entry) || typeof entry.name !== 'string') throw invalid(`"${at}" must be a string.`, at)
    })
    for (const name of Object.keys(tool)) {
      if (LOCAL.some((local) => name === local || name === inSnakeCase(local)) || tool[name] === null) continue
      const hosted = Object.keys(HOSTED).find((one) => name === one || name === inSnakeCase(one)) ?? name
      const refused = hostedRefusal(HOSTED[hosted] ?? name, `tools[${i}].${name}`, traits)
      if (refused) throw refused
    }
  })
}

/** Pictures and sound that a model makes have prices of their own, which this endpoint does not know. */
function checkModalities(modalities: unknown): void {
  if (modalities === undefined) return
  const at = 'generationConfig.responseModalities'
  if (!Array.isArray(modalities)) throw mustBe(at, 'an array of strings', modalities)
  const other = modalities.find((entry) => String(entry).toUpperCase() !== 'TEXT')
  if (other !== undefined)
    throw invalid(`"${at}": ${shown(other)} has no price here; leave it out, or send ["TEXT"].`, at)
}

function checkedObject(holder: Json, name: string, before = ''): Json {
  const value = member(holder, name)
  if (value !== undefined && !isObject(value)) throw mustBe(`${before}${name}`, 'an object', value)
  return objectAt(holder, name)
}
