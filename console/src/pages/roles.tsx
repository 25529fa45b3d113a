// The names of roles, and a choice among those that the person may give.
import type { AnyRole } from '../wire.ts'

export const ROLE_NAMES: Readonly<Record<AnyRole, string>> = {
  operator: 'Operator',
  finance: 'Finance',
  support: 'Support',
  auditor: 'Auditor',
  owner: 'Owner',
  admin: 'Admin',
  member: 'Member',
  viewer: 'Viewer',
  billing: 'Billing',
}
