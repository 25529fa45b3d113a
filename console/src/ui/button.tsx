import type { ComponentProps, ReactNode } from 'react'
import { Link } from '../router.tsx'
import { type Needs, useAllowed } from '../session.tsx'
import { Icon, type IconName } from './icon.tsx'

export type Look = 'primary' | 'plain' | 'ghost' | 'danger'

interface Dress {
  look?: Look | undefined
  icon?: IconName | undefined
  small?: boolean | undefined
}

const classes = ({ look = 'plain', small }: Dress, extra?: string) =>
  ['button', `button-${look}`, small ? 'button-small' : '', extra ?? ''].filter(Boolean).join(' ')

interface ButtonProps extends Dress, Needs, Omit<ComponentProps<'button'>, 'className'> {
  busy?: boolean | undefined
  className?: string
}

/**
 * A busy button keeps its place and its name, says that it is busy, and takes no second click. Who has not the right
 * for it does not see it.
 */
export function Button({ look, icon, small, busy, className, children, type = 'button', ...props }: ButtonProps) {
  const { right, account, ...rest } = props
  if (!useAllowed({ right, account })) return null
  return (
    <button
      type={type}
      data-right={right}
      className={classes({ look, small }, className)}
      aria-busy={busy || undefined}
      {...rest}
      disabled={rest.disabled || busy}
    >
      {busy ? <span className="spinner" aria-hidden="true" /> : icon ? <Icon name={icon} size={16} /> : null}
      {children}
    </button>
  )
}

export function IconButton({
  icon,
  label,
  right,
  account,
  ...rest
}: { icon: IconName; label: string } & Needs & Omit<ComponentProps<'button'>, 'children' | 'className'>) {
  if (!useAllowed({ right, account })) return null
  return (
    <button type="button" className="icon-button" data-right={right} aria-label={label} title={label} {...rest}>
      <Icon name={icon} />
    </button>
  )
}

export function LinkButton({
  look,
  icon,
  small,
  to,
  right,
  account,
  children,
}: Dress & Needs & { to: string; children: ReactNode }) {
  if (!useAllowed({ right, account })) return null
  return (
    <Link to={to} className={classes({ look, small })}>
      {icon ? <Icon name={icon} size={16} /> : null}
      {children}
    </Link>
  )
}
