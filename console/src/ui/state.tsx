// The states that every reading page has: loading, failed, empty, and more to come.
import { Component, type ReactNode } from 'react'
import type { List, Query } from '../query.ts'
import { Link } from '../router.tsx'
import { useSignedIn } from '../session.tsx'
import { Button } from './button.tsx'
import { Icon, type IconName } from './icon.tsx'

/** An error, or as much of one as a draft keeps. */
interface Problem {
  message: string
  status?: number | undefined
  code?: number | undefined
  requestId?: string | undefined
}

export function Skeleton({ lines = 3, like }: { lines?: number; like?: 'tall' | 'rows' | 'page' }) {
  return (
    <div className={like ? `skeleton skeleton-${like}` : 'skeleton'} role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} className="skeleton-line" />
      ))}
    </div>
  )
}

export function Empty({
  icon,
  title,
  children,
  action,
}: {
  icon: IconName
  title: string
  children?: ReactNode
  action?: ReactNode
}) {
  return (
    <div className="empty">
      <span className="empty-icon">
        <Icon name={icon} size={24} />
      </span>
      <p className="empty-title">{title}</p>
      {children ? <div className="empty-text">{children}</div> : null}
      {action ? <div className="empty-action">{action}</div> : null}
    </div>
  )
}

interface FaultProps {
  error: Problem
  retry?: (() => void) | undefined
  retrying?: boolean
}

/** What went wrong in the server's own words, with the id that its operator can search for. */
export function Fault({ error, retry, retrying = false }: FaultProps) {
  const { status, code, requestId } = error
  // What the API says of calls, "nothing was charged", does not concern a page that only reads.
  const message =
    retrying && status === 503
      ? 'The gateway cannot read from its database right now. This page tries again by itself.'
      : retrying
        ? 'The gateway cannot be reached. This page tries again by itself.'
        : error.message
  const detail = [status ? `HTTP ${status}` : '', code === undefined ? '' : `code ${code}`].filter(Boolean).join(', ')
  return (
    <div className="fault tone-bad" role="alert">
      <Icon name="warning" />
      <div className="fault-text">
        <p>{message}</p>
        {code !== undefined || requestId ? (
          <p className="fault-detail">
            {detail}
            {requestId ? (
              <>
                {' '}
                · request <RequestId id={requestId} />
              </>
            ) : null}
          </p>
        ) : null}
      </div>
      {retry ? (
        <Button small icon="refresh" onClick={retry}>
          Try again
        </Button>
      ) : null}
    </div>
  )
}

/** Leads to what is recorded of the request. */
export function RequestId({ id }: { id: string }) {
  if (!useSignedIn()) return <code>{id}</code>
  return (
    <Link to={`/calls/${encodeURIComponent(id)}`}>
      <code>{id}</code>
    </Link>
  )
}

/** Shows what is known; a failed refresh keeps the old data on screen and says so above it. */
export function Loaded<T>({
  query,
  children,
  skeleton,
}: {
  query: Query<T>
  children: (data: T) => ReactNode
  skeleton?: ReactNode
}) {
  return (
    <>
      {query.error ? <Fault error={query.error} retry={query.reload} retrying={query.retrying} /> : null}
      {query.data !== undefined ? children(query.data) : query.error ? null : (skeleton ?? <Skeleton lines={5} />)}
    </>
  )
}

export function LoadMore<T>({ list }: { list: List<T> }) {
  if (!list.more) return null
  return (
    <div className="more">
      <Button onClick={list.more} busy={list.moreBusy}>
        Load more
      </Button>
    </div>
  )
}

/** A page that throws shows this message in its place; the navigation stays. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | undefined }> {
  override state: { error: Error | undefined } = { error: undefined }

  static getDerivedStateFromError(error: Error) {
    return { error }
  }

  override render() {
    if (!this.state.error) return this.props.children
    return (
      <Empty
        icon="warning"
        title="This page could not be shown"
        action={
          <Button look="primary" icon="refresh" onClick={() => window.location.reload()}>
            Reload
          </Button>
        }
      >
        <p>The console may have been updated since it was opened. Reloading usually helps.</p>
        <p>
          <code>{this.state.error.message}</code>
        </p>
      </Empty>
    )
  }
}
