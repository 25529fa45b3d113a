// What sets one vendor's models apart from the format they speak, by the model's name: our families and the vendors'
// own names.

export type FamilyName = 'alpha' | 'beta' | 'gamma' | 'delta' | 'epsilon' | 'zeta' | 'plain'

const NAMES: readonly (readonly [RegExp, FamilyName])[] = [
  [/^(alpha|gpt|chatgpt|o\d)/i, 'alpha'],
  [/^(beta|claude)/i, 'beta'],
  [/^(gamma|deepseek)/i, 'gamma'],
  [/^(delta|gemini)/i, 'delta'],
  [/^(epsilon|kimi|moonshot)/i, 'epsilon'],
  [/^(zeta|minimax)/i, 'zeta'],
]

export function familyOf(model: string): FamilyName {
  // A vendor may be reached through a path-like name such as google/gemini.
  const name = model.slice(model.lastIndexOf('/') + 1)
  return NAMES.find(([pattern]) => pattern.test(name))?.[1] ?? 'plain'
}

/** 5.4 of alpha-5.4, 6 of alpha-6-astra; 0 where the name has no number. */
export function versionOf(model: string): number {
  return Number.parseFloat(model.match(/(\d+(?:\.\d+)?)/)?.[1] ?? '0')
}
