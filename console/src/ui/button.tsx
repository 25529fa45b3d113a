import type { ComponentProps, ReactNode } from 'react'
import { Link } from '../router.tsx'
import { Icon, type IconName } from './icon.tsx'

export type Look = 'primary' | 'plain' | 'ghost' | 'danger'

interface Dress {
  look?: Look | undefined
  icon?: IconName | undefined
  small?: boolean | undefined
}

const classes = ({ look = 'plain', small }: Dress, extra?: string) =>
  ['button', `button-${look}`, small ? 'button-small' : '', extra ?? ''].filter(Boolean).join(' ')

interface ButtonProps extends Dress, Omit<ComponentProps<'button'>, 'className'> {
  busy?: boolean | undefined
  className?: string
}

/** A busy button keeps its place and its name, says that it is busy, and takes no second click. */
export function Button({ look, icon, small, busy, className, children, type = 'button', ...rest }: ButtonProps) {
  return (
    <button
      type={type}
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
  ...rest
}: { icon: IconName; label: string } & Omit<ComponentProps<'button'>, 'children' | 'className'>) {
  return (
    <button type="button" className="icon-button" aria-label={label} title={label} {...rest}>
      <Icon name={icon} />
    </button>
  )
}

export function LinkButton({ look, icon, small, to, children }: Dress & { to: string; children: ReactNode }) {
  return (
    <Link to={to} className={classes({ look, small })}>
      {icon ? <Icon name={icon} size={16} /> : null}
      {children}
    </Link>
  )
}
