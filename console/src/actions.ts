// What the signed-in person may change.
import { api } from './api.ts'
import { useQuery } from './query.ts'
import { lastAccount, useMay } from './session.tsx'
import type { Action } from './wire.ts'

export const actionId = ({ method, path }: Pick<Action, 'method' | 'path'>) => `${method} ${path}`

/** Those that the person may do, in the account that was open last or in the gateway. */
export function useActions(isAsked = true): ReturnType<typeof useQuery<Action[]>> {
  const may = useMay()
  const account = lastAccount()
  return useQuery(isAsked ? 'actions' : undefined, async (signal) => {
    const { items } = await api.actions(signal)
    return items.filter(({ right, ofAccount }) => !right || may(right, ofAccount ? account : undefined))
  })
}
