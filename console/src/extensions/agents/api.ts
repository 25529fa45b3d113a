// What the console asks about agents.
import { account, encode, get, post, put, remove } from '../../api.ts'
import type { AgentSettings, Budget, BudgetProposal, Page, Program } from '../../wire.ts'

export const agentsApi = {
  settings: (id: string, signal?: AbortSignal) =>
    get<Page<AgentSettings>>(account(id, '/agent-settings'), undefined, signal),
  set: (id: string, scope: string, input: Omit<AgentSettings, 'scope'>) =>
    put<AgentSettings>(account(id, `/agent-settings/${encode(scope)}`), input),
  remove: (id: string, scope: string) => remove<unknown>(account(id, `/agent-settings/${encode(scope)}`)),
  programs: (id: string, signal?: AbortSignal) => get<Page<Program>>(account(id, '/programs'), undefined, signal),
  proposals: (id: string, signal?: AbortSignal) =>
    get<Page<BudgetProposal>>(account(id, '/budget-proposals'), undefined, signal),
  confirm: (id: string, proposal: string) => post<Budget>(account(id, `/budget-proposals/${encode(proposal)}/confirm`)),
  dismiss: (id: string, proposal: string) => remove<unknown>(account(id, `/budget-proposals/${encode(proposal)}`)),
}
