import { useDraft } from '../../draft.ts'
import { useAction } from '../../ui/action.ts'
import { Code } from '../../ui/code.tsx'
import { TextField } from '../../ui/field.tsx'
import { BenchAnswer, BenchForm, type BenchProps, modelTab, play, useWish } from './bench.tsx'
import type { Receipt } from './cost.tsx'

interface Page {
  index: number
  markdown: string
}

interface Result {
  pages: readonly Page[]
  receipt?: Receipt
}

const FIRST = { model: '', address: '', pages: '' }
const EMPTY = {
  icon: 'models',
  title: 'Results appear here',
  words: 'Give the address of a PDF or a picture.',
} as const

export const OcrPlay = modelTab('ocr', 'models', (model) => model.type === 'ocr', OcrBench)

function OcrBench({ account, models }: BenchProps) {
  const bench = useWish(`ocr/${account}`, FIRST, models)
  const { wish, model, set } = bench
  const [result, setResult] = useDraft<Result | undefined>(`ocr/${account}/result`, undefined)
  const document = { type: 'document_url', document_url: wish.address }
  const body = { document, ...(wish.pages ? { pages: wish.pages } : {}) }
  const call = useAction(async (signal) => {
    const request = { body: { model: model?.uid, ...body }, signal }
    const { answer, ...receipt } = await play<{ pages: Page[] }>(account, 'POST', '/v1/ocr', request)
    setResult({ pages: answer.pages, ...receipt })
  })
  return (
    <div className="bench">
      <BenchAnswer account={account} error={call.error} result={result} empty={EMPTY}>
        {({ pages }) => (
          <div className="stack">
            {pages.map(({ index, markdown }) => (
              <Code key={index} label={`Page ${index + 1}`} wrap text={markdown} />
            ))}
          </div>
        )}
      </BenchAnswer>
      <BenchForm
        kind="ocr"
        action="Read"
        icon="models"
        bench={bench}
        call={call}
        ready={wish.address !== ''}
        account={account}
        body={body}
      >
        <TextField
          label="Address"
          value={wish.address}
          onText={set('address')}
          placeholder="https://example.com/contract.pdf"
          required
        />
        <TextField
          label="Pages"
          hint="From 0 on, such as 0-4,7. Leave empty for all of them."
          value={wish.pages}
          onText={set('pages')}
        />
      </BenchForm>
    </div>
  )
}
