// A link cannot say which format it wants, so the file is fetched with the right header and handed to the browser.
import { toastError } from '../ui/toast.tsx'

export async function saveCsv(fetchIt: () => Promise<Blob>, name: string): Promise<void> {
  try {
    const address = URL.createObjectURL(await fetchIt())
    const link = document.createElement('a')
    link.href = address
    link.download = name.replace(/[^\w.-]/g, '_')
    link.click()
    window.setTimeout(() => URL.revokeObjectURL(address), 10_000)
  } catch (error) {
    toastError(error)
  }
}
