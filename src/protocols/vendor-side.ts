// What happens on the vendor's side only: tools that the vendor runs and bills by use, for which there is no price, are
// refused unless the catalogue lets them through; answers that the vendor keeps are refused where the catalogue says so.
import { invalid } from '../kernel/fault.ts'
import { isObject, type Json, objects } from './check.ts'
import type { TextTraits } from './traits.ts'

/** Typed tools carry a date in some formats: `web_search_20260318`. */
const HOSTED = ['web_search', 'file_search', 'code_interpreter', 'code_execution', 'image_generation'] as const
const KEPT = ['previous_response_id', 'conversation', 'prompt'] as const

export function checkVendorSide(body: Json, traits: TextTraits): void {
  objects(body.tools).forEach((tool, i) => {
    const hosted = HOSTED.find((name) => typeof tool.type === 'string' && tool.type.startsWith(name))
    if (hosted && !traits.hostedTools.includes(hosted))
      throw invalid(
        `"tools[${i}].type": the tool "${hosted}" runs at the provider and has no price here; use function tools.`,
        `tools[${i}].type`,
      )
  })
  if (isObject(body.web_search_options) && !traits.hostedTools.includes('web_search'))
    throw invalid(
      '"web_search_options": web search runs at the provider and has no price here; leave it out.',
      'web_search_options',
    )
  if (traits.vendorState) return
  for (const name of KEPT)
    if (body[name] !== undefined && body[name] !== null)
      throw invalid(
        `"${name}" refers to what a provider keeps, which is not shared between accounts here; send the whole conversation as "input".`,
        name,
      )
  objects(body.input).forEach((item, i) => {
    if (item.type === 'item_reference')
      throw invalid(
        `"input[${i}]" refers to an item that a provider keeps; send the item itself, with "store": false.`,
        `input[${i}]`,
      )
  })
}
