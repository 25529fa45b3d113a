// A link cannot say which format it wants, so the file is fetched with the right header and handed to the browser.
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { toastError } from '../ui/toast.tsx'

export function CsvButton({
  fetchIt,
  name,
  label = 'CSV',
}: {
  fetchIt: () => Promise<Blob>
  name: string
  label?: string
}) {
  const { busy, go } = useAction(() => save(fetchIt, name).catch(toastError))
  return (
    <Button small icon="download" busy={busy} onClick={() => go()}>
      {label}
    </Button>
  )
}

export async function save(fetchIt: () => Promise<Blob>, name: string): Promise<void> {
  const address = URL.createObjectURL(await fetchIt())
  const link = document.createElement('a')
  link.href = address
  link.download = name.replace(/[^\p{L}\p{M}\p{N}._]+/gu, '-')
  link.click()
  window.setTimeout(() => URL.revokeObjectURL(address), 10_000)
}
