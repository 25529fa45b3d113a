// The usage that a Realtime vendor reports at the end of a response, in the units of prices.
import { type Json, objectOf } from '../../../kernel/json.ts'
import { readCount, type Usage } from '../../../meter/usage.ts'

/** The units never overlap: what was cached is taken from what was read. */
export function usageOf({ input_tokens, output_tokens, input_token_details, output_token_details }: Json): Usage {
  const read = objectOf(input_token_details)
  const cached = objectOf(read.cached_tokens_details)
  const made = objectOf(output_token_details)
  const count = (from: Json, name: string) => readCount(from[name]) ?? 0
  const input = readCount(input_tokens) ?? count(read, 'text_tokens') + count(read, 'audio_tokens')
  const output = readCount(output_tokens) ?? count(made, 'text_tokens') + count(made, 'audio_tokens')
  const cachedInput = Math.min(count(read, 'cached_tokens'), input)
  const left = input - cachedInput
  const inputAudio = Math.min(Math.max(0, count(read, 'audio_tokens') - count(cached, 'audio_tokens')), left)
  const inputImage = Math.min(
    Math.max(0, count(read, 'image_tokens') - count(cached, 'image_tokens')),
    left - inputAudio,
  )
  const outputAudio = Math.min(count(made, 'audio_tokens'), output)
  const units = { input: left - inputAudio - inputImage, cachedInput, inputAudio, inputImage }
  const all = { ...units, output: output - outputAudio, outputAudio }
  return Object.fromEntries(Object.entries(all).filter(([, quantity]) => quantity > 0))
}
