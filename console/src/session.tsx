// Who is signed in, and what that person may see. The server decides; this only hides links that would be refused.
import { createContext, type ReactNode, useContext } from 'react'
import { roleMay } from '../../src/identity/roles.ts'
import { api } from './api.ts'
import { clearDrafts } from './draft.ts'
import { clearCache } from './query.ts'
import type { Permission, Session } from './wire.ts'

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

/** Asks the table of roles: in the whole gateway, or in the account if one is named. */
export function useMay(): (permission: Permission, account?: string) => boolean {
  const session = useSession()
  return (permission, account) => mayIn(session, permission, account)
}

function mayIn({ user, accounts }: Session, permission: Permission, account?: string): boolean {
  const role = account === undefined ? undefined : accounts.find(({ id }) => id === account)?.role
  return (user.role !== 'user' && roleMay(user.role, permission)) || (role !== undefined && roleMay(role, permission))
}

/** The right that a control needs: the table of roles says who sees it. */
export interface Needs {
  right?: Permission | undefined
  /** Where a role of the account counts too. */
  account?: string | undefined
}

/** Without a right everybody may; so may whoever is not signed in, for whom the server decides alone. */
export function useAllowed({ right, account }: Needs): boolean {
  const session = useContext(SessionContext)
  return right === undefined || session === undefined || mayIn(session, right, account)
}

export interface RightProps extends Needs {
  right: Permission
  children: ReactNode
}

/** What only those see who may use it. */
export function Allowed({ right, account, children }: RightProps) {
  return useMay()(right, account) ? children : null
}

/** A form that shows what is set to everybody who may read it. Who may not change it is told so, and cannot. */
export function AllowedFields({ right, account, children }: RightProps) {
  const may = useMay()
  const { user, accounts } = useSession()
  if (may(right, account)) return children
  const role = user.role !== 'user' ? user.role : accounts.find(({ id }) => id === account)?.role
  return (
    <fieldset className="locked" disabled>
      <p className="muted">The role {role ?? 'that you have'} may not change this.</p>
      {children}
    </fieldset>
  )
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
