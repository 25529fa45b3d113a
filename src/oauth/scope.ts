/** There is one: to use the tools, as far as the consent goes. */
export const SCOPE = 'mcp'

/** What tokens are for. */
export const resourceOf = (issuer: string) => `${issuer}/mcp`
