// The words of the simulated models. They are the first thing that a new user reads, so they answer to the question as
// far as one can without understanding it, say plainly that they are simulated, and say how to get real answers.

import { readMentions } from './instance.ts'
import { isRecord, parseJson } from './json.ts'
import { type Dice, dice, hash } from './seed.ts'
import { lastUserTurn, type TextAsk, type TextTurn, toolResults } from './text.ts'
import { withoutTriggers } from './trigger.ts'

const READ_CHARS_MAX = 2000

export function writeAnswer(ask: TextAsk): string {
  const turn = lastUserTurn(ask.turns)
  // The beginning says enough, and reading on would cost milliseconds.
  const prompt = withoutTriggers((turn?.text ?? '').slice(0, READ_CHARS_MAX)).trim()
  const own = dice(ask.seed ?? hash(`${ask.model} ${prompt}`))
  const results = toolResults(ask.turns)
  const body = results.length > 0 ? fromResults(results, prompt) : fromPrompt(prompt, turn?.images ?? 0, own)
  return `${body}\n\n${closing(ask.model, own)}`
}

function closing(model: string, own: Dice): string {
  return own.pick([
    `(This is a simulated answer: the Tollgate sandbox is standing in for ${model}. To call the real model, connect its vendor: tollgate connect, or Add vendor on the console’s page of vendors.)`,
    `(Simulated by the Tollgate sandbox in place of ${model}. Connect the real vendor by tollgate connect, or Add vendor on the console’s page of vendors; nothing in your code has to change.)`,
    `(You are talking to the Tollgate sandbox, which simulates ${model}. Connect the real vendor (tollgate connect, or Add vendor in the console), and the same call will reach it.)`,
  ])
}

function quote(text: string, charsMax = 160): string {
  const line = text
    .slice(0, charsMax * 4)
    .replace(/\s+/g, ' ')
    .trim()
  return line.length <= charsMax ? line : `${line.slice(0, charsMax).replace(/\s+\S*$/, '')}…`
}

/** A quotation that ends its sentence. */
function cited(prompt: string): string {
  const words = quote(prompt)
  return `“${words}”${/[.?!…]$/.test(words) ? '' : '.'}`
}

type Reader = (prompt: string, own: Dice) => string | undefined

/** The first that recognises the prompt answers it. */
const READERS: readonly Reader[] = [sayIt, arithmetic, greeting, code, translation, verse, enumeration, question]

function fromPrompt(prompt: string, images: number, own: Dice): string {
  if (prompt === '') {
    return images > 0
      ? `You sent ${counted(images, 'picture')} and no words. A real model would now describe what it sees.`
      : 'Your message had no text in it, so there is little to answer. Ask me anything.'
  }
  const seen =
    images > 0 ? `Together with your words came ${counted(images, 'picture')}, and the request carried it whole. ` : ''
  for (const read of READERS) {
    const answer = read(prompt, own)
    if (answer !== undefined) return seen + answer
  }
  const opening = own.pick([
    `You wrote: ${cited(prompt)}`,
    `I read your message: ${cited(prompt)}`,
    `Here is what I was asked: ${cited(prompt)}`,
  ])
  return `${seen}${opening} ${own.pick([
    'A real model would work on it now. What you can judge already is everything around the words: the key was checked, credits were held, this text streams piece by piece, and the tokens are counted and charged as they would be in earnest.',
    'There is no model behind these sentences, but the way they took is the real one: your key, the hold on your credits, the routing, the stream, the metering and the settlement.',
  ])}`
}

function sayIt(prompt: string): string | undefined {
  const asked = prompt.match(
    /^(?:please )?(?:just )?(?:say|reply|respond|answer|repeat|echo|print)(?: with| only| exactly| the words?| after me| back)*:? +(.{1,400})$/is,
  )
  if (!asked?.[1]) return undefined
  const words = asked[1].trim().replace(/^["“'](.*)["”'][.!]?$/s, '$1')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function arithmetic(prompt: string): string | undefined {
  const sum = prompt.match(
    /(-?\d{1,9}(?:\.\d{1,6})?)\s*([-+*x×/÷]|plus|minus|times|divided by)\s*(-?\d{1,9}(?:\.\d{1,6})?)/i,
  )
  if (!sum || prompt.length > 200) return undefined
  const [, left = '', sign = '', right = ''] = sum
  const result = calculate(Number(left), sign.toLowerCase(), Number(right))
  if (result === undefined) return undefined
  return `${left} ${sign} ${right} is ${Number(result.toPrecision(12))}. That much arithmetic even a simulation can do.`
}

function calculate(left: number, sign: string, right: number): number | undefined {
  if (sign === '+' || sign === 'plus') return left + right
  if (sign === '-' || sign === 'minus') return left - right
  if (sign === '/' || sign === '÷' || sign === 'divided by') return right === 0 ? undefined : left / right
  return left * right
}

function greeting(prompt: string, own: Dice): string | undefined {
  if (
    !/^(hi|hello|hey|good (morning|evening|day|afternoon)|salut|bonjour|hallo|hola|ciao|ping|test)\b.{0,60}$/is.test(
      prompt,
    )
  )
    return undefined
  return own.pick([
    'Hello! Your call went through: the key is good, credits were held, and this answer is on its way to you.',
    'Hello, and welcome. If you can read this, your key, your balance and the connection all work.',
    'Hi there! Everything between you and a model is working; only the model itself is missing.',
  ])
}

const LANGUAGES: readonly (readonly [RegExp, string, string])[] = [
  [
    /\bpython\b/i,
    'python',
    'def answer() -> str:\n    """Stands where a real model would write code."""\n    return "simulated"\n\n\nprint(answer())',
  ],
  [
    /\b(typescript|javascript|node|js|ts)\b/i,
    'ts',
    "export function answer(): string {\n  // A real model would write the body.\n  return 'simulated'\n}\n\nconsole.log(answer())",
  ],
  [/\bsql\b/i, 'sql', "-- A real model would write the query.\nselect 'simulated' as answer;"],
  [/\b(bash|shell)\b/i, 'sh', '#!/bin/sh\n# A real model would write the script.\necho simulated'],
  [/\brust\b/i, 'rust', 'fn main() {\n    // A real model would write the body.\n    println!("simulated");\n}'],
  [
    /\bgo(lang)?\b.{0,200}\b(code|function|program)\b/i,
    'go',
    'package main\n\nimport "fmt"\n\nfunc main() {\n\t// A real model would write the body.\n\tfmt.Println("simulated")\n}',
  ],
]

function code(prompt: string): string | undefined {
  if (!/\b(code|function|script|program|class|query|implement|regex)\b/i.test(prompt)) return undefined
  const [, name, sample] = LANGUAGES.find(([pattern]) => pattern.test(prompt)) ?? LANGUAGES[1] ?? []
  if (name === undefined || sample === undefined) return undefined
  return `You asked for code: “${quote(prompt)}”. This is the shape in which it would arrive, fences and line breaks included:\n\n\`\`\`${name}\n${sample}\n\`\`\``
}

function translation(prompt: string): string | undefined {
  const asked = prompt.match(/\btranslate\b.{0,500}?\b(?:in)?to (\p{L}+)/iu)
  if (!asked?.[1]) return undefined
  const [text] = readMentions(prompt).quoted
  return `You would like ${text === undefined ? 'a translation' : `“${quote(text)}”`} in ${asked[1]}. Translating takes a real model; the sandbox only speaks this one language.`
}

function verse(prompt: string): string | undefined {
  if (!/\b(poem|haiku|verse|limerick|song)\b/i.test(prompt)) return undefined
  return 'A key turns, and then\na small token leaves the gate:\ncounted, sent, and paid.'
}

function enumeration(prompt: string): string | undefined {
  const asked = prompt.match(
    /\b(?:list|name|give me|suggest)\b\s+(\d{1,2}|two|three|four|five|six|seven|eight|nine|ten|some|a few)?\s*(.{3,160})/is,
  )
  if (!asked?.[2] || !/\b(list|name \w+|ideas?|examples?|suggest|\d+ )/i.test(prompt)) return undefined
  const wanted =
    ['two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'].indexOf((asked[1] ?? '').toLowerCase()) + 2
  const count = Math.min(10, Number.parseInt(asked[1] ?? '', 10) || (wanted > 1 ? wanted : 3))
  const lines = Array.from(
    { length: count },
    (_, i) => `${i + 1}. The ${ordinal(i + 1)} entry a real model would give.`,
  )
  return `A list was asked for (${quote(asked[2].replace(/(?<![.?!])[.?!]+$/, ''), 100)}):\n\n${lines.join('\n')}`
}

function question(prompt: string, own: Dice): string | undefined {
  if (
    !/\?\s*$/.test(prompt) &&
    !/^(what|who|where|when|why|how|which|explain|describe|tell me|summari[sz]e)\b/i.test(prompt)
  )
    return undefined
  const opening = own.pick([
    `You asked: ${cited(prompt)}`,
    `Your question, as it reached the vendor: ${cited(prompt)}`,
    `A good question to start with: ${cited(prompt)}`,
  ])
  return `${opening} ${own.pick([
    'The sandbox cannot know the answer, because no model runs behind it. It can show you how one would arrive: word by word, with its tokens counted and its price taken from your credits exactly once.',
    'I cannot answer it truthfully, for I am a stand-in without a model. Everything else works as in production: the key, the hold, the stream, the token counts and the charge.',
  ])}`
}

function fromResults(results: readonly TextTurn[], prompt: string): string {
  const lines = results.map(
    ({ toolName, text }) => `${toolName ? `The tool ${toolName}` : 'The tool'} reports ${reported(text)}`,
  )
  const about = prompt === '' ? '' : ` That is what is needed for “${quote(prompt, 100)}”.`
  return `${lines.join('\n')}${about}`
}

/** `{"temp":12,"sky":"clear"}` reads "temp 12, sky clear." */
function reported(text: string): string {
  const value = parseJson(text)
  if (!isRecord(value)) return `“${quote(text, 300)}”.`
  const facts = Object.entries(value).map(
    ([name, fact]) => `${name.replace(/_/g, ' ')} ${typeof fact === 'object' ? JSON.stringify(fact) : String(fact)}`,
  )
  return facts.length === 0 ? 'nothing.' : `${quote(facts.join(', '), 300)}.`
}

function counted(count: number, noun: string): string {
  return count === 1 ? `one ${noun}` : `${count} ${noun}s`
}

function ordinal(position: number): string {
  return (
    ['first', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh', 'eighth', 'ninth', 'tenth'][position - 1] ??
    `${position}th`
  )
}

export function writeReasoning(ask: TextAsk): string {
  const prompt = withoutTriggers((lastUserTurn(ask.turns)?.text ?? '').slice(0, READ_CHARS_MAX))
  const own = dice((ask.seed ?? hash(`${ask.model} ${prompt}`)) + 1)
  const results = toolResults(ask.turns)
  const start = own.pick(['The user wants an answer to', 'I am asked', 'Let me look at the request:'])
  const middle =
    results.length > 0
      ? `${counted(results.length, 'tool result')} came back, and I should use ${results.length === 1 ? 'it' : 'them'}.`
      : own.pick(['I should be brief and honest.', 'I should say what I am and keep to the point.'])
  return `${start} “${quote(prompt, 80)}”. ${middle} This reasoning is simulated by the Tollgate sandbox, so there is nothing deeper to find here.`
}
