// Changes the account that the caller's pages show. Operators may search all accounts.
import { useState } from 'react'
import { api } from './api.ts'
import { useList } from './query.ts'
import { Link } from './router.tsx'
import { useMay } from './session.tsx'
import { Dialog, DialogBody } from './ui/dialog.tsx'
import { TextField } from './ui/field.tsx'
import { Icon } from './ui/icon.tsx'
import { Amount } from './ui/page.tsx'
import { Empty, Loaded, LoadMore } from './ui/state.tsx'

export function AccountPicker({ current, onClose }: { current: string | undefined; onClose: () => void }) {
  const seesAll = useMay()('accounts:read')
  const [text, setText] = useState('')
  const list = useList(`accounts/pick/${text}`, (cursor, signal) =>
    api.accounts({ q: text, ...(cursor ? { cursor } : {}) }, signal),
  )
  return (
    <Dialog title="Switch account" onClose={onClose}>
      <DialogBody>
        {seesAll ? (
          <TextField label="Find an account" quiet placeholder="Find by name or id" value={text} onText={setText} />
        ) : null}
        <Loaded query={list}>
          {(accounts) =>
            accounts.length === 0 ? (
              <Empty icon="accounts" title="No account found" />
            ) : (
              <ul className="pick-list">
                {accounts.map((account) => (
                  <li key={account.id}>
                    <Link
                      to={`/a/${encodeURIComponent(account.id)}`}
                      className="pick"
                      aria-current={account.id === current ? 'true' : undefined}
                      onClick={onClose}
                    >
                      <span>
                        <b>{account.name}</b>
                        <code className="cell-sub">{account.id}</code>
                      </span>
                      <span className="pick-end">
                        <Amount value={account.available} decimals={2} unit />
                        {account.id === current ? <Icon name="check" size={16} /> : null}
                      </span>
                    </Link>
                  </li>
                ))}
              </ul>
            )
          }
        </Loaded>
        <LoadMore list={list} />
      </DialogBody>
    </Dialog>
  )
}
