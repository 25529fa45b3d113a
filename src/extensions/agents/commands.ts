// Commands of proposals, of what agents may do, and of tool servers.
import type { Commands } from '../../operator/command.ts'

const SHOWN = {
  words:
    '{name} at {url}. It last answered: {lastAnsweredAt|never}. What failed the last time: {error|nothing}.[tools:[changes:\n{tool} has changed: {field}\n  - {before|–}\n  + {after|–}]]',
  tables: { tools: 'tool, state, id, digest' },
}

export const AGENT_COMMANDS: Commands = {
  'GET /accounts/{id}/budget-proposals': {
    usage: 'budgets proposals <account>: What agents proposed. People confirm it in the console.',
    columns: 'PROPOSAL=id, BUDGET=budgetId, MAX={was} to {max}, WHY=reason, BY=proposedBy',
  },
  'DELETE /accounts/{id}/budget-proposals/{proposalId}': {
    usage: 'budgets dismiss <account> <proposal>',
    words: 'The proposal {id} was dismissed.',
  },
  'GET /accounts/{id}/agent-settings': {
    usage: 'agent-settings list <account>: What the agents of each team may do.',
    columns: 'scope, MODELS=models|all, DEFAULT=defaultModel, SMALL=smallModel, callMax',
  },
  'PUT /accounts/{id}/agent-settings/{scope}': {
    usage: 'agent-settings set <account> <scope>: Sets what the programs and keys of a team’s people may do.',
    about:
      'The scope is a team or project, or "account" for everybody who is in none with settings. What is not named is not restricted.',
  },
  'DELETE /accounts/{id}/agent-settings/{scope}': {
    usage: 'agent-settings remove <account> <scope>',
    words: 'The settings of {scope} were removed.',
  },
  'GET /accounts/{id}/programs': {
    usage: 'programs list <account>: The programs that people have signed in, and what they spent.',
    columns: 'PERSON=email, program, LAST USED=lastUsedAt, 30 DAYS=charged, KEY=keyId',
  },
  'GET /tool-servers': {
    usage: 'tool-servers list: Lists registered MCP servers, and how many of their tools are sold or held back.',
    columns:
      'SERVER=name, ADDRESS=url, LISTED=tools.state#listed, HELD BACK=tools.state#changed+gone, LAST SEEN=lastAnsweredAt|never, error',
  },
  'GET /tool-servers/{name}': {
    usage: 'tool-servers show <server>: Shows an MCP server: its tools, and what changed since you agreed to them.',
    ...SHOWN,
  },
  'PUT /tool-servers/{name}': {
    usage: 'tool-servers register <server>: Registers an MCP server, or changes its address, credential or limits.',
    without: ['auth'],
    ...SHOWN,
  },
  'POST /tool-servers/{name}/refresh': {
    usage: 'tool-servers refresh <server>: Reads the list of tools of an MCP server again.',
    ...SHOWN,
  },
  'DELETE /tool-servers/{name}': {
    usage: 'tool-servers remove <server>: Removes an MCP server and its tools from the catalog.',
    words: 'Removed.',
  },
}
