// Names that were changed: of settings, members, options, commands and paths. A request with an old name gets an error that names the new one.
export const RENAMED: Readonly<Record<string, string>> = {
  TOLLGATE_DEFAULT_MODEL: 'TOLLGATE_FILL_DEFAULT_MODEL',
  TOLLGATE_SHED_LAG_MS: 'TOLLGATE_OVERLOAD_LAG_MS',
  TOLLGATE_ASSET_DAYS: 'TOLLGATE_RETENTION_ASSET_DAYS',
  TOLLGATE_REFUSAL_DAYS: 'TOLLGATE_RETENTION_REJECTED_DAYS',
  TOLLGATE_USAGE_MONTHS: 'TOLLGATE_RETENTION_USAGE_MONTHS',
  doors: 'clientFormats',
  ownKeyFee: 'byokFee',
  keepsAnswers: 'responseCache',
  'kept-answers': 'response-cache',
  'own-keys': 'byok-keys',
  blanks: 'variables',
  ownMax: 'overridden',
  refusedDomains: 'blockedDomains',
}

/** A sentence about the first of these names that was changed. */
export function renamedHint(names: readonly string[]): string | undefined {
  const old = names.find((name) => Object.hasOwn(RENAMED, name))
  return old === undefined ? undefined : `\`${old}\` is called \`${RENAMED[old]}\` now.`
}
