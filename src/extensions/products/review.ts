// What changes of products say in a review. The console bundles this file.
import {
  type Change,
  each,
  isSame,
  leafSentences,
  omit,
  type Review,
  type Tree,
  treeOf,
} from '../../catalog/change-sentences.ts'

export const reviewProducts: Review = (before, after) => each(before, after, operationSentences)

function operationSentences(name: string, before: Tree | undefined, after: Tree | undefined): Change[] {
  const [was, is] = [treeOf(before?.operations), treeOf(after?.operations)]
  const ids = Object.keys(is)
  const many = (count: number) => (count === 1 ? '1 operation' : `${count} operations`)
  if (!after) return [`Product ${name} is removed, with ${many(Object.keys(was).length)}.`]
  if (!before) return [`Product ${name} is new, with ${many(ids.length)}: ${ids.slice(0, 20).join(', ')}.`]
  const others = leafSentences(`Product ${name}`, omit(before, ['operations']), omit(after, ['operations']))
  const operations = each(was, is, (id, old, now) => {
    const place = `${name}/${id}`
    if (!old || !now) return [`Operation ${place} is ${now ? 'new' : 'removed'}.`]
    const members = [...new Set([...Object.keys(old), ...Object.keys(now)])]
    return [`Operation ${place} is changed: ${members.filter((one) => !isSame(old[one], now[one])).join(', ')}.`]
  })
  return [...others, ...operations]
}
