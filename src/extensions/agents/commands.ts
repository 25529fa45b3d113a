// Commands of proposals, and of what agents may do.
import type { Commands } from '../../operator/command.ts'

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
}
