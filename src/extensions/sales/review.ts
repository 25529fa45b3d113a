// What changes of packs and plans say in a review. The console bundles this file.
import {
  type Describe,
  each,
  leafSentences,
  listOf,
  omit,
  type Review,
  treeOf,
} from '../../catalog/change-sentences.ts'

export const reviewSales: Review = (was, is) => {
  const [before, after] = [treeOf(was), treeOf(is)]
  const apart = ['packs', 'plans']
  const offers = (shelf: unknown) => Object.fromEntries(listOf(shelf).map((one) => [String(one.id), one]))
  const described =
    (what: string): Describe =>
    (id, was, is) => {
      if (!is) return [`${what} ${id} is no longer sold.`]
      if (was) return leafSentences(`${what} ${id}`, was, is)
      return [`${what} ${id} is sold: ${String(is.credits)} credits for ${String(is.price)} ${String(after.currency)}.`]
    }
  return [
    ...leafSentences('Sales', omit(before, apart), omit(after, apart)),
    ...each(offers(before.packs), offers(after.packs), described('Pack')),
    ...each(offers(before.plans), offers(after.plans), described('Plan')),
  ]
}
