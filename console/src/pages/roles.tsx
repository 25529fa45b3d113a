// The names of roles, and a choice among those that the person may give.
import { useState } from 'react'
import { ACCOUNT_ROLES, coversRole, OPERATOR_ROLES, ROLE_WORDS } from '../../../src/identity/roles.ts'
import { useMay } from '../session.tsx'
import { FormDialog } from '../ui/dialog.tsx'
import { SelectField } from '../ui/field.tsx'
import type { AccountRole, AnyRole, OperatorRole } from '../wire.ts'

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

/** Nobody gives a role that may do more than their own. */
function useGivable<Role extends AnyRole>(roles: readonly Role[], account?: string): Role[] {
  const may = useMay()
  return roles.filter((role) => coversRole((permission) => may(permission, account), role))
}

export const useAccountRoles = (account: string): AccountRole[] => useGivable(ACCOUNT_ROLES, account)
export const useOperatorRoles = (): OperatorRole[] => useGivable(OPERATOR_ROLES)

export function RoleField<Role extends AnyRole>(props: {
  value: Role
  roles: readonly Role[]
  onRole: (role: Role) => void
}) {
  return (
    <SelectField
      label="Role"
      value={props.value}
      onText={(text) => {
        const chosen = props.roles.find((role) => role === text)
        if (chosen) props.onRole(chosen)
      }}
      options={props.roles.map((role) => [role, `${ROLE_NAMES[role]}: ${ROLE_WORDS[role]}`] as const)}
    />
  )
}

export function ChangeRole<Role extends AnyRole>(props: {
  email: string
  role: Role
  roles: readonly Role[]
  run: (role: Role) => Promise<unknown>
  onClose: () => void
}) {
  const [role, setRole] = useState(props.role)
  return (
    <FormDialog title="Change role" action="Change role" run={() => props.run(role)} onClose={props.onClose}>
      <p>
        What <b>{props.email}</b> may do changes at once.
      </p>
      <RoleField value={role} roles={props.roles} onRole={setRole} />
    </FormDialog>
  )
}
