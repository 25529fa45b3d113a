// Sign-ins at tool servers: each person's own, and one for keys that belong to nobody.
import { useEffect, useState } from 'react'
import { api } from '../../api.ts'
import { refresh, useList } from '../../query.ts'
import { BASE, navigate } from '../../router.tsx'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Page, When } from '../../ui/page.tsx'
import { Empty, Fault, Skeleton } from '../../ui/state.tsx'
import { Named, TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'

/** Where to go on when the browser comes back: it brings only what the server gave it. */
const PENDING = 'tool-sign-in'

interface SignInProps {
  /** Undefined: the operator's own, for looking. */
  account: string | undefined
  server: string
  shared: boolean
  at: string | null
}

export function SignIn({ account, server, shared, at }: SignInProps) {
  const right =
    account === undefined
      ? ({ right: 'vendors:write' } as const)
      : ({ right: shared ? 'teams:write' : 'tool-connections:write', account } as const)
  const begin = useAction(async () => {
    const { redirect } = await api.beginToolSignIn(account, server, shared)
    sessionStorage.setItem(PENDING, JSON.stringify({ account, back: window.location.pathname.slice(BASE.length) }))
    window.location.assign(redirect)
  })
  const end = useAction(async () => {
    await api.endToolSignIn(account, server, shared)
    toast('Signed out.')
    refresh('tool-sign-ins')
  })
  const error = begin.error ?? end.error
  return (
    <span className="row">
      {at ? (
        <>
          <span>
            since <When at={at} />
          </span>
          <Button {...right} small busy={end.busy} onClick={() => end.go()}>
            Sign out
          </Button>
        </>
      ) : (
        <Button {...right} small busy={begin.busy} onClick={() => begin.go()}>
          Sign in
        </Button>
      )}
      {error ? <Fault error={error} /> : null}
    </span>
  )
}

export function SignInsPage({ account }: { account: string }) {
  const list = useList(`tool-sign-ins/${account}`, (_, signal) => api.toolSignIns(account, signal))
  return (
    <Page
      title="Connected tools"
      lead="Sign in to tools that act on your behalf. Your keys use your sign-in; keys without a member use the shared one."
    >
      <TableCard
        label="Connected tools"
        list={list}
        rowKey={({ server }) => server}
        empty={<Empty icon="key" title="No tool needs a sign-in" />}
        columns={[
          {
            head: 'Server',
            main: true,
            cell: ({ server, title, url }) => <Named name={title ?? server} sub={new URL(url).host} />,
          },
          {
            head: 'Yours',
            cell: ({ server, mySignInAt }) => (
              <SignIn account={account} server={server} shared={false} at={mySignInAt} />
            ),
          },
          {
            head: 'For keys without a member',
            cell: ({ server, sharedSignInAt }) => (
              <SignIn account={account} server={server} shared at={sharedSignInAt} />
            ),
          },
        ]}
      />
    </Page>
  )
}

/** Each answer is used once, also where the page is drawn twice. */
let finishing: { readonly query: string; readonly done: Promise<string> } | undefined

async function finish(query: string): Promise<string> {
  const { account, back = '/' } = JSON.parse(sessionStorage.getItem(PENDING) ?? '{}') as {
    account?: string
    back?: string
  } // As `SignIn` wrote it.
  sessionStorage.removeItem(PENDING)
  await api.finishToolSignIn(account, query)
  return back
}

export function SignedInAtToolPage() {
  const [error, setError] = useState<Error>()
  useEffect(() => {
    const query = window.location.search.slice(1) || finishing?.query || ''
    // The code must not stay in the address, where a bookmark or a screen would keep it.
    window.history.replaceState(null, '', window.location.pathname)
    if (finishing?.query !== query) finishing = { query, done: finish(query) }
    finishing.done.then((back) => {
      toast('Signed in.')
      refresh('tool-sign-ins', 'tool-server')
      navigate(back, { replace: true })
    }, setError)
  }, [])
  return <Page title="Sign-in at a tool server">{error ? <Fault error={error} /> : <Skeleton lines={2} />}</Page>
}
