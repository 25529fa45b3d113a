// A sensitive act asks for a fresh proof of who somebody is. The dialog asks for it, and the request is then sent again
// by api.ts.
import { useEffect, useSyncExternalStore } from 'react'
import { api, whenProofNeeded } from './api.ts'
import { usePasskey } from './extensions/directory/passkey.ts'
import { ProofForm } from './pages/second-factor.tsx'
import { useQuery } from './query.ts'
import { navigate } from './router.tsx'
import { Dialog, DialogBody } from './ui/dialog.tsx'
import { Note } from './ui/page.tsx'
import { Loaded } from './ui/state.tsx'
import type { ProofWay } from './wire.ts'

interface Asked {
  readonly ways: readonly ProofWay[]
  readonly answer: Promise<boolean>
  readonly settle: (proved: boolean) => void
}

/** Several requests that wait for the same proof share one dialog. */
let asked: Asked | undefined
const listeners = new Set<() => void>()

function change(next: Asked | undefined): void {
  asked = next
  for (const listener of listeners) listener()
}

function ask(ways: readonly string[]): Promise<boolean> {
  if (ways.includes('enrol')) {
    navigate('/profile?factor=required')
    return Promise.resolve(false)
  }
  if (asked) return asked.answer
  const { promise, resolve } = Promise.withResolvers<boolean>()
  change({
    ways: ways as readonly ProofWay[], // The header names nothing else.
    answer: promise,
    settle: (proved) => {
      change(undefined)
      resolve(proved)
    },
  })
  return promise
}

/** A page of another tab says by it that the provider has confirmed who the person is. */
export const PROOF_CHANNEL = 'proof'

export function ProofDialog() {
  useEffect(() => whenProofNeeded(ask), [])
  const current = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => asked,
  )
  if (!current) return null
  const done = async (proving: Promise<unknown>) => {
    await proving
    current.settle(true)
  }
  return (
    <Dialog title="Confirm that it is you" onClose={() => current.settle(false)}>
      <DialogBody>
        <p>This action is sensitive. A confirmation is valid for ten minutes.</p>
        {current.ways.includes('sso') ? (
          <ByProvider onProved={() => current.settle(true)} />
        ) : (
          <ProofForm
            ways={current.ways}
            byCode={(code) => done(api.prove({ code: code.replaceAll(' ', '') }))}
            byPassword={(password) => done(api.prove({ password }))}
            byPasskey={async () => done(api.provePasskey(await usePasskey(await api.provePasskeyOptions())))}
          />
        )}
      </DialogBody>
    </Dialog>
  )
}

/** In a tab of its own, so that what was typed here stays. */
function ByProvider({ onProved }: { onProved: () => void }) {
  const begun = useQuery('proof/sso', api.proveSso)
  useEffect(() => {
    const channel = new BroadcastChannel(PROOF_CHANNEL)
    channel.onmessage = onProved
    return () => channel.close()
  }, [onProved])
  return (
    <Loaded query={begun}>
      {({ redirect }) => (
        <>
          <a className="button button-primary" href={redirect} target="_blank" rel="noreferrer" data-first>
            Sign in at your login provider again
          </a>
          <Note>It opens in a new tab. Come back here afterwards.</Note>
        </>
      )}
    </Loaded>
  )
}
