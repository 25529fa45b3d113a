// Which tools a simulated model calls, and with what: those that the person names, in whole or by a telling word of the
// name.
import { instanceOf, type Mentions, readMentions } from './instance.ts'
import { type Json, list, record } from './json.ts'
import { dice, hash } from './seed.ts'
import { lastUserTurn, type TextAsk, type TextCall, type TextTool, toolResults } from './text.ts'
import { type Triggers, withoutTriggers } from './trigger.ts'

/** Verbs and fillers that say nothing about what a tool is for. */
const PLAIN_WORDS = new Set(
  'get set list find fetch search create make call use run tool function the and for with from that this given returns return current about into your value data'.split(
    ' ',
  ),
)
const CALLS_MAX = 8

export function chooseCalls(ask: TextAsk, triggers: Triggers): TextCall[] {
  if (ask.tools.length === 0 || ask.toolChoice === 'none') return []
  const prompt = withoutTriggers(lastUserTurn(ask.turns)?.text ?? '')
  const chosen = chooseTools(ask, prompt, triggers)
  if (chosen.length === 0) return []

  const mentions = readMentions(prompt)
  const repeats = triggers.number('tools')
  const calls: { tool: TextTool; mentions: Mentions }[] = chosen.flatMap((tool) =>
    subjects(tool, mentions, ask.parallelTools, repeats).map((own) => ({ tool, mentions: own })),
  )
  const own = dice(hash(`${ask.model} ${ask.turns.length} ${prompt}`))
  return calls
    .slice(0, ask.parallelTools ? CALLS_MAX : 1)
    .map(({ tool, mentions: about }) => ({
      id: `call_${own.hex(24)}`,
      name: tool.name,
      arguments: tool.custom ? prompt.slice(0, 200) : JSON.stringify(instanceOf(objectSchema(tool.schema), about)),
      ...(tool.namespace === undefined ? {} : { namespace: tool.namespace }),
      ...(tool.custom ? { custom: tool.custom } : {}),
    }))
}

function chooseTools(ask: TextAsk, prompt: string, triggers: Triggers): TextTool[] {
  const { tools, toolChoice } = ask
  if (typeof toolChoice === 'object') return tools.filter((tool) => tool.name === toolChoice.name).slice(0, 1)
  const answered = toolResults(ask.turns).length > 0
  const named = triggers.find('tool')
  // The trigger stays in the conversation: without an end, an agent that sends the result back would never be done.
  const isOver = answered && toolChoice !== 'required'
  const wanted = tools.filter((tool) => tool.name === named?.value)
  if (named && (wanted.length > 0 || toolChoice !== 'required')) return isOver && named.rest !== 'always' ? [] : wanted
  if (isOver) return []
  const matching = namedTools(tools, prompt)
  if (matching.length > 0) return matching
  const forced = toolChoice === 'required' || triggers.has('tools')
  return forced ? tools.slice(0, 1) : []
}

function words(text: string): Set<string> {
  const found = text
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .match(/\p{L}{3,}/gu)
  // The first letters are enough: "convert" meets "conversion".
  return new Set((found ?? []).filter((word) => !PLAIN_WORDS.has(word)).map((word) => word.slice(0, 6)))
}

/**
 * Not by its description: agents offer dozens of tools with pages of text each, and some of them would concern any
 * sentence. One that is named in whole is meant alone, and not those that share a word with it.
 */
function namedTools(tools: readonly TextTool[], prompt: string): TextTool[] {
  const whole = new Set(prompt.match(/[\p{L}\p{N}_-]+/gu))
  const named = tools.filter((tool) => whole.has(tool.name))
  if (named.length > 0) return named
  const asked = words(prompt.slice(0, 4000))
  return tools.filter((tool) => !words(tool.name).isDisjointFrom(asked))
}

/** "in Oslo and Bergen" makes one call for each of them, where the tool takes a name and calls may be parallel. */
function subjects(tool: TextTool, mentions: Mentions, parallel: boolean, repeats: number | undefined): Mentions[] {
  const several = repeats ?? (parallel && takesOneName(tool.schema) ? mentions.names.length : 1)
  if (several <= 1) return [mentions]
  return Array.from({ length: Math.min(several, CALLS_MAX) }, (_, i) => {
    const name = mentions.names[i] ?? mentions.names[0]
    return name === undefined ? mentions : { ...mentions, names: [name] }
  })
}

function takesOneName(schema: Json): boolean {
  const required = list(schema.required)
  return Object.entries(record(schema.properties)).some(([name, property]) => {
    const { type, enum: choices, format } = record(property)
    if (type !== 'string' || choices !== undefined || format !== undefined) return false
    const isName = /city|place|location|country|name|person|company|symbol|ticker|domain|user/i.test(name)
    return isName && (required.length === 0 || required.includes(name))
  })
}

function objectSchema(schema: Json): Json {
  return { ...schema, type: 'object' }
}
