// The thread on which pictures are made that take too long for the gateway's own.
import { parentPort } from 'node:worker_threads'
import { type PictureOrder, paint } from './picture.ts'

parentPort?.on('message', async ({ ticket, order }: { ticket: number; order: PictureOrder }) => {
  const bytes = await paint(order)
  parentPort?.postMessage({ ticket, bytes })
})
