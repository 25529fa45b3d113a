// A link cannot say which format it wants, so the file is fetched with the right header and handed to the browser.
import { api } from '../api.ts'
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { toastError } from '../ui/toast.tsx'
import { dayOf } from '../zone.ts'

type FileName = string | (() => Promise<string>)

export function CsvButton({
  fetchIt,
  name,
  label = 'CSV',
}: {
  fetchIt: () => Promise<Blob>
  name: FileName
  label?: string
}) {
  const { busy, go } = useAction(() => save(fetchIt, name).catch(toastError))
  return (
    <Button small icon="download" busy={busy} onClick={() => go()}>
      {label}
    </Button>
  )
}

/**
 * With the account's name and the days, so that one file is told from the next:
 * `calls-Harbor-Books-2026-11-01-2026-11-19.csv`. The end is the moment after the last day.
 */
export async function csvName(
  what: string,
  account: string | undefined,
  { from, to }: { from?: string | undefined; to?: string | undefined } = {},
): Promise<string> {
  const whose = account === undefined ? 'all accounts' : (await api.account(account)).name
  const last = to === undefined ? [] : [dayOf(new Date(Date.parse(to) - 1).toISOString())]
  return `${[what, whose, ...(from === undefined ? [] : [dayOf(from)]), ...last].join('-')}.csv`
}

export async function save(fetchIt: () => Promise<Blob>, name: FileName): Promise<void> {
  const address = URL.createObjectURL(await fetchIt())
  const link = document.createElement('a')
  link.href = address
  link.download = (typeof name === 'string' ? name : await name()).replace(/[^\p{L}\p{M}\p{N}._]+/gu, '-')
  link.click()
  window.setTimeout(() => URL.revokeObjectURL(address), 10_000)
}
