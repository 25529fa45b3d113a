// How often a test tries what it tries: as often as fits into `npm test`, or as often as `npm run chaos` and `npm run
// test:long` do.
export const FULL = process.env.TOLLGATE_TEST_FULL === '1'

export function runs(short: number, full: number): number {
  return FULL ? full : short
}

export const EXTENSIONS_OFF_VARIABLE = 'TOLLGATE_TEST_EXTENSIONS_OFF'
/** The extensions that are switched off in this run. */
export const OFF = (process.env[EXTENSIONS_OFF_VARIABLE] ?? '').split(',')
export const isOff = (extension: string) => OFF.includes('all') || OFF.includes(extension)

/** For a test that uses these extensions: with --no-extensions and --alone they may be switched off. */
export const needs = (...extensions: readonly string[]) => {
  const off = extensions.filter(isOff)
  return { skip: off.length > 0 && `without ${off.join(', ')}` }
}

/** For a test of what an extension adds: there is none with --no-extensions. */
export const WITH_EXTENSIONS = { skip: OFF.includes('all') && 'without extensions' }
