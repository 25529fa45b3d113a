// What is known of each fault by its name: put in by the build, from the table that the server answers by.
declare const FAULT_WORDS: Record<string, { text: string; advice: string }>

/** The fault in words a reader knows: `credits_short` becomes "credits short". */
export const faultTitle = (name: string) => name.replaceAll('_', ' ')
export const faultText = (name: string): string | undefined => FAULT_WORDS[name]?.text
/** The advice is written for the reference, with code marked by backticks. */
export const faultAdvice = (name: string): string | undefined => FAULT_WORDS[name]?.advice.replaceAll('`', '')
export const faultPage = (name: string) => `/docs/reference/errors#${name}`
