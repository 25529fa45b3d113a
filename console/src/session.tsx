// Who is signed in, and what that person may see. The server decides; this only hides links that would be refused.
import { createContext, type ReactNode, useContext } from 'react'
import { api } from './api.ts'
import { clearDrafts } from './draft.ts'
import { clearCache } from './query.ts'
import type { Session } from './wire.ts'

const SessionContext = createContext<Session | undefined>(undefined)

export function SessionProvider({ session, children }: { session: Session; children: ReactNode }) {
  return <SessionContext value={session}>{children}</SessionContext>
}

export function useSession(): Session {
  const session = useContext(SessionContext)
  if (!session) throw new Error('This page needs a session.')
  return session
}

/** Pages for whoever is not signed in show faults too. */
export const useSignedIn = (): boolean => useContext(SessionContext) !== undefined

export function useIsOperator(): boolean {
  return useSession().user.role === 'operator'
}

/** Owners and operators manage members. */
export function useMayManage(accountId: string): boolean {
  const session = useSession()
  const own = session.accounts.find((account) => account.id === accountId)
  return session.user.role === 'operator' || own?.role === 'owner'
}

const LAST_ACCOUNT = 'account'

export function rememberAccount(id: string): void {
  try {
    localStorage.setItem(LAST_ACCOUNT, id)
  } catch {
    // Without storage the first account is opened next time.
  }
}

export function lastAccount(): string | undefined {
  try {
    return localStorage.getItem(LAST_ACCOUNT) ?? undefined
  } catch {
    return undefined
  }
}

/** Leaves nothing of this person behind in the tab, then loads the page anew. */
export async function signOut(): Promise<void> {
  await api.logOut().catch(() => undefined)
  clearCache()
  clearDrafts()
  window.location.assign('/console/login')
}
