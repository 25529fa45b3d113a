import { assert, test } from '../../../../test/kit.ts'
import { usageOf } from './usage.ts'

test('each member of a published usage object is charged once, as what it is', () => {
  const read = { text_tokens: 100, audio_tokens: 50, image_tokens: 30 }
  const cached = { cached_tokens: 60, cached_tokens_details: { text_tokens: 40, audio_tokens: 15, image_tokens: 5 } }
  const made = { output_tokens: 70, output_token_details: { text_tokens: 20, audio_tokens: 50 } }
  const cases: [usage: Record<string, unknown>, units: Record<string, number>][] = [
    [{}, {}],
    [{ input_tokens: 0, output_tokens: 0 }, {}],
    [
      { input_tokens: 9, output_tokens: 7, total_tokens: 16 },
      { input: 9, output: 7 },
    ],
    [
      { input_tokens: 180, input_token_details: read, ...made },
      { input: 100, inputAudio: 50, inputImage: 30, output: 20, outputAudio: 50 },
    ],
    [
      { input_tokens: 180, input_token_details: { ...read, ...cached }, ...made },
      { input: 60, cachedInput: 60, inputAudio: 35, inputImage: 25, output: 20, outputAudio: 50 },
    ],
    [{ input_tokens: 10, input_token_details: { cached_tokens: 99, audio_tokens: 99 } }, { cachedInput: 10 }],
    [{ input_tokens: -5, output_tokens: 'x', output_token_details: { audio_tokens: 3 } }, { outputAudio: 3 }],
  ]
  for (const [usage, units] of cases) assert.deepEqual(usageOf(usage), units)
})
