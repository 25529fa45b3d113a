// Simulated answers look varied and are the same every time: all choices come from a hash of what was asked.

export interface Dice {
  /** A whole number from 0 up to, and without, `below`. */
  roll(below: number): number
  pick<T>(choices: readonly [T, ...T[]]): T
  /** Lower-case hexadecimal digits, for ids and signatures. */
  hex(length: number): string
}

/** FNV-1a, 32 bits: cheap, and good enough to choose a sentence. Long texts are sampled. */
export function hash(text: string): number {
  let value = 0x811c9dc5
  const step = text.length > 20_000 ? Math.floor(text.length / 10_000) : 1
  for (let i = 0; i < text.length; i += step) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193)
  return value >>> 0
}

export function dice(seed: number): Dice {
  let state = seed >>> 0
  // Mulberry32.
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
  return {
    roll: (below) => next() % below,
    pick: (choices) => choices[next() % choices.length] ?? choices[0],
    hex(length) {
      let text = ''
      while (text.length < length) text += next().toString(16).padStart(8, '0')
      return text.slice(0, length)
    },
  }
}
