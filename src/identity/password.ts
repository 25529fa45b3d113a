// Passwords: which ones are rejected, and how the others are stored.
import { type Argon2Parameters, argon2, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { Fault } from '../kernel/fault.ts'
import { Semaphore } from '../kernel/semaphore.ts'
import type { World } from '../kernel/world.ts'

// Passwords are hashed with argon2id, off the event loop and at most two at a time: each takes a core for a tenth of a
// second.

export interface Cost {
  readonly memoryKiB: number
  readonly passes: number
}

/** 97 ms on one core of a 2026 server; above the 19,456 KiB and two passes that OWASP recommends. */
export const COST: Cost = { memoryKiB: 32_768, passes: 3 }
const PARALLELISM = 1
const SALT_BYTES = 16
const HASH_BYTES = 32
const AT_ONCE = 2
const WAITING_MAX = 50

export interface Passwords {
  hash(password: string): Promise<string>
  /** `stale`: right, but hashed with another cost than the current one. */
  verify(password: string, stored: string): Promise<'right' | 'stale' | 'wrong'>
  /** Takes as long as `verify`, for email addresses that no person has. */
  verifyNobody(password: string): Promise<'wrong'>
}

const derive = promisify(argon2)

export function createPasswords({ world, cost = COST }: { world: World; cost?: Cost | undefined }): Passwords {
  const semaphore = new Semaphore({
    unitsMax: AT_ONCE,
    waitersMax: WAITING_MAX,
    refusal: () =>
      new Fault('unavailable', {
        message: 'Too many people are logging in at this moment. Try again shortly.',
        retryAfterSeconds: 2,
        internal: { why: 'password queue is full' },
      }),
  })

  async function run(parameters: Argon2Parameters): Promise<Buffer> {
    await semaphore.take()
    try {
      return await derive('argon2id', parameters)
    } finally {
      semaphore.give()
    }
  }

  const compute = (password: string, salt: Buffer, { memoryKiB, passes }: Cost, tagLength: number) =>
    run({
      // Different machines may encode the same typed characters as different code points.
      message: Buffer.from(password.normalize('NFKC')),
      nonce: salt,
      parallelism: PARALLELISM,
      tagLength,
      memory: memoryKiB,
      passes,
    })

  const passwords: Passwords = {
    async hash(password) {
      const salt = world.bytes(SALT_BYTES)
      const hash = await compute(password, salt, cost, HASH_BYTES)
      const { memoryKiB, passes } = cost
      return `$argon2id$v=19$m=${memoryKiB},t=${passes},p=${PARALLELISM}$${unpadded(salt)}$${unpadded(hash)}`
    },
    async verify(password, stored) {
      const parts = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(stored)
      if (!parts) throw new Error('A stored password cannot be read.')
      const used = { memoryKiB: Number(parts[1]), passes: Number(parts[2]) }
      const expected = Buffer.from(parts[4]!, 'base64')
      const given = await compute(password, Buffer.from(parts[3]!, 'base64'), used, expected.length)
      if (!timingSafeEqual(given, expected)) return 'wrong'
      return used.memoryKiB === cost.memoryKiB && used.passes === cost.passes ? 'right' : 'stale'
    },
    async verifyNobody(password) {
      await compute(password, world.bytes(SALT_BYTES), cost, HASH_BYTES)
      return 'wrong'
    },
  }
  return passwords
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/(?<!=)=+$/, '')
}

// Passwords that attackers guess first. Lists of leaked passwords are mostly the same few words with digits, years,
// doubled letters and keyboard rows around them, so these parts are removed and enough must be left.

const PASSWORD_CHARS_MIN = 12
const PASSWORD_CHARS_MAX = 128

const WORDS =
  `password passwort passw pass word secret geheim welcome willkommen letmein let me in login logon signin admin
  administrator root user username guest test tester testing demo example default changeme change temp temporary
  master access system server database backup service support operator manager company office business tollgate
  gateway api key token iloveyou love lover loveyou baby angel princess prince sunshine shadow dragon monkey tiger lion
  football baseball soccer hockey basketball liverpool chelsea arsenal barcelona batman superman spiderman pokemon
  starwars matrix hunter ranger killer ninja trustno trust freedom flower summer winter spring autumn january february
  march april june july august september october november december monday tuesday wednesday thursday friday saturday
  sunday michael jordan jennifer jessica ashley daniel thomas robert charlie george andrew michelle computer internet
  google facebook samsung microsoft windows linux apple cheese cookie chocolate coffee banana orange purple yellow
  green blue black silver golden diamond money dollar bitcoin qwerty qwertz azerty asdf zxcv hello hallo bonjour
  nothing whatever forever family mother father brother sister happy lucky super mega correct horse battery staple the
  and is my this it for you`.split(/\s+/)
// Longest first, so that `pass` does not break `password`.
const WORD = new RegExp([...WORDS].sort((a, b) => b.length - a.length).join('|'), 'g')

const ROWS = [
  'abcdefghijklmnopqrstuvwxyz',
  '0123456789',
  'qwertyuiop',
  'qwertzuiop',
  'azertyuiop',
  'asdfghjkl',
  'zxcvbnm',
  'yxcvbnm',
  '1q2w3e4r5t6z7u8i9o0p',
  '1q2w3e4r5t6y7u8i9o0p',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik',
  'qazwsxedcrfvtgbyhnujm',
]
const RUN_CHARS_MIN = 3
const LEFT_CHARS_MIN = 4
const WORDS_MAX = 2
/**
 * Decoration stands before, after and between words. A password that alternates more often between letters and digits
 * counts as random.
 */
const TURNS_MAX = 5
const DISTINCT_MIN = 5
const LEET: Record<string, string> = {
  '0': 'o',
  '1': 'l',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
  '!': 'i',
}

/** The reason for rejecting a new password, as a sentence; undefined if it is accepted. */
export function passwordProblem(password: string, email: string): string | undefined {
  const chars = [...password.normalize('NFKC')]
  if (!password.isWellFormed() || /\p{Cc}/u.test(password)) return 'It holds characters that cannot be typed.'
  if (chars.length < PASSWORD_CHARS_MIN) return `It must have at least ${PASSWORD_CHARS_MIN} characters.`
  if (chars.length > PASSWORD_CHARS_MAX) return `It must have at most ${PASSWORD_CHARS_MAX} characters.`
  return isGuessable(chars.join('').toLowerCase(), email.toLowerCase())
    ? 'It is too easy to guess. A few unrelated words in a row are easy to remember and hard to guess.'
    : undefined
}

function isGuessable(password: string, email: string): boolean {
  if (new Set(password).size < DISTINCT_MIN) return true
  if (/^(.{1,6})\1+.{0,5}$/su.test(password)) return true
  const own = [email, ...email.split(/[@.+_-]/).filter((part) => part.length >= RUN_CHARS_MIN)]
  return [password, unleet(password)].some((text) => leavesNothing(text, own))
}

function unleet(text: string): string {
  return [...text].map((char) => LEET[char] ?? char).join('')
}

function leavesNothing(text: string, own: readonly string[]): boolean {
  let rest = text
  for (const part of own) rest = rest.replaceAll(part, '')
  const words = new Set<string>()
  rest = withoutRuns(rest).replace(WORD, (word) => {
    words.add(word)
    return ''
  })
  // Digits and signs between the words are the usual decoration, and repeated letters add little, so only distinct
  // letters count.
  const left = new Set(rest.replaceAll(/[^\p{L}]/gu, ''))
  const turns = rest.match(/\p{L}+|\d+|[^\p{L}\d]+/gu)?.length ?? 0
  return left.size < LEFT_CHARS_MIN && words.size <= WORDS_MAX && turns <= TURNS_MAX
}

/** Removes pieces of the alphabet, of digits and of keyboard rows, forwards and backwards. */
function withoutRuns(text: string): string {
  let rest = text
  for (const row of ROWS)
    for (const line of [row, [...row].reverse().join('')])
      for (let size = line.length; size >= RUN_CHARS_MIN; size--)
        for (let at = 0; at + size <= line.length; at++) rest = rest.replaceAll(line.slice(at, at + size), '')
  return rest
}
