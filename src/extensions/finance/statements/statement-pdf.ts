// A monthly statement as PDF, on A4. The library is loaded when the first one is made.
import type PDFDocument from 'pdfkit'
import { formatCredits, parseCredits } from '../../../kernel/credits.ts'
import { dateName, monthName } from '../../../reports/balance-sentence.ts'
import { formatMoney } from '../../../reports/billing.ts'
import { addFonts, lettersOf } from '../../billing/pdf-fonts.ts'
import { KIND_WORDS, summaryLines, usageLines } from './statement-lines.ts'
import type { MonthlyStatement } from './views.ts'

const LEFT = 50
const RIGHT = 545
const BOTTOM = 770
const LINE = 16
/** Three lines of a cell. */
const CELL_MAX = 33
/** Between two rows. */
const GAP = 5.5
/** Rows of a table. Drawing blocks the event loop, and an account may have any number of keys. */
const ROWS_MAX = 1_000
const GREY = '#666666'
const BLACK = '#111111'
const RULE = '#cccccc'

interface Column {
  readonly head: string
  readonly x: number
  readonly width: number
  readonly isRight?: boolean
}

export async function statementPdf(statement: MonthlyStatement): Promise<Buffer> {
  const { default: Document } = await import('pdfkit')
  const pdf = new Document({
    size: 'A4',
    margins: { top: 50, left: LEFT, right: 50, bottom: 0 },
    bufferPages: true,
    font: null,
    info: { Title: `Statement of ${statement.account.name}, ${monthName(statement.month)}` },
  })
  const chunks: Buffer[] = []
  const done = new Promise<void>((resolve, reject) => {
    pdf.on('data', (chunk) => chunks.push(chunk))
    pdf.on('end', () => resolve())
    pdf.on('error', reject)
  })
  await addFonts(pdf)
  pdf.y = 50
  head(pdf, statement)
  summary(pdf, statement)
  usage(pdf, statement)
  movements(pdf, statement)
  foot(pdf, statement)
  pdf.end()
  await done
  return Buffer.concat(chunks)
}

function head(pdf: PDFDocument, { account, month, from, to, final }: MonthlyStatement): void {
  const last = new Date(Date.parse(to) - 1).toISOString()
  pdf
    .font('bold')
    .fontSize(20)
    .fillColor(BLACK)
    .text(`Statement ${monthName(month)}`, LEFT, 50)
  pdf
    .fontSize(12)
    .text(lettersOf(pdf, account.name), LEFT, 84, { width: RIGHT - LEFT, lineBreak: false, ellipsis: true })
  pdf.font('regular').fontSize(9).fillColor(GREY)
  pdf.text(account.id, LEFT, 101, { lineBreak: false })
  pdf.text(`${dateName(from)} to ${dateName(last)} (UTC)`, LEFT, 114, { lineBreak: false })
  if (!final) pdf.text('The month is not over: this statement is preliminary.', LEFT, 127, { lineBreak: false })
  pdf.y = final ? 140 : 152
}

function summary(pdf: PDFDocument, statement: MonthlyStatement): void {
  const { worth } = statement
  const columns: Column[] = [
    { head: '', x: LEFT, width: 220 },
    { head: 'Credits', x: 270, width: worth ? 150 : 275, isRight: true },
    ...(worth ? [{ head: worth.currency, x: 425, width: 120, isRight: true }] : []),
  ]
  const rows = summaryLines(statement).map(([name, amount]) => [
    name,
    exact(amount),
    ...(worth ? [grouped(formatMoney(amount, worth))] : []),
  ])
  table(pdf, columns, rows, (row) => /balance$/.test(row[0] ?? ''))
  if (worth)
    note(pdf, `One credit is worth ${worth.rate} ${worth.currency}. Credits are exact; amounts of money are rounded.`)
}

function usage(pdf: PDFDocument, statement: MonthlyStatement): void {
  const lines = usageLines(statement)
  if (lines.length === 0) return
  const by = statement.label?.name
  title(pdf, by === undefined ? 'Usage by model or endpoint and key' : `Usage by ${by}`)
  // Usage whose calls are no longer stored is the last line, without a number of calls.
  const last = lines.findIndex(({ calls }) => calls === null)
  const [listed, gone] = last < 0 ? [lines, []] : [lines.slice(0, last), lines.slice(last)]
  const rest = listed.slice(ROWS_MAX)
  const sum = { what: moreWords(rest), key: '', calls: rest.reduce((all, { calls }) => all + (calls ?? 0), 0) }
  const more = rest.length === 0 ? [] : [{ ...sum, charged: formatCredits(sumOf(rest.map(({ charged }) => charged))) }]
  const rows = [...listed.slice(0, ROWS_MAX), ...more, ...gone].map(({ what, key, calls, charged }) => [
    what,
    ...(by === undefined ? [key] : []),
    calls === null ? '' : grouped(String(calls)),
    exact(parseCredits(charged) ?? 0n),
  ])
  const columns: Column[] = [
    ...(by === undefined
      ? [
          { head: 'Model or endpoint', x: LEFT, width: 200 },
          { head: 'Key', x: 255, width: 110 },
        ]
      : [{ head: by, x: LEFT, width: 310 }]),
    { head: 'Calls', x: 370, width: 55, isRight: true },
    { head: 'Credits', x: 430, width: 115, isRight: true },
  ]
  table(pdf, columns, rows)
}

function movements(pdf: PDFDocument, statement: MonthlyStatement): void {
  if (statement.movements.length === 0) return
  title(pdf, 'Top-ups and corrections')
  const columns: Column[] = [
    { head: 'Date (UTC)', x: LEFT, width: 110 },
    { head: 'Kind', x: 165, width: 95 },
    { head: 'Note', x: 265, width: 160 },
    { head: 'Credits', x: 430, width: 115, isRight: true },
  ]
  const rows = statement.movements
    .slice(0, ROWS_MAX)
    .map(({ at, kind, moved, note: said }) => [
      dateName(at),
      KIND_WORDS[kind],
      said ?? '',
      exact(parseCredits(moved) ?? 0n),
    ])
  const rest = statement.movements.slice(ROWS_MAX)
  if (rest.length > 0) rows.push(['', '', moreWords(rest), exact(sumOf(rest.map(({ moved }) => moved)))])
  table(pdf, columns, rows)
}

const moreWords = (rest: readonly unknown[]) => `${grouped(String(rest.length))} more, in the CSV file`
const sumOf = (amounts: readonly string[]) => amounts.reduce((sum, amount) => sum + (parseCredits(amount) ?? 0n), 0n)

function foot(pdf: PDFDocument, { contact, account, month }: MonthlyStatement): void {
  const { start, count } = pdf.bufferedPageRange()
  for (let page = start; page < start + count; page += 1) {
    pdf.switchToPage(page)
    pdf.font('regular').fontSize(8).fillColor(GREY)
    const asks = contact === null ? '' : `  Questions: ${contact}`
    pdf.text(lettersOf(pdf, `${account.name}, ${monthName(month)}.${asks}`), LEFT, 800, {
      width: 400,
      lineBreak: false,
      ellipsis: true,
    })
    pdf.text(`Page ${page - start + 1} of ${count}`, 455, 800, { width: 90, align: 'right', lineBreak: false })
  }
}

function title(pdf: PDFDocument, text: string): void {
  if (pdf.y > BOTTOM - 5 * LINE) newPage(pdf)
  pdf
    .font('bold')
    .fontSize(12)
    .fillColor(BLACK)
    .text(text, LEFT, pdf.y + 18, { lineBreak: false })
  pdf.y += 38
}

function note(pdf: PDFDocument, text: string): void {
  pdf
    .font('regular')
    .fontSize(8)
    .fillColor(GREY)
    .text(text, LEFT, pdf.y + 4, { lineBreak: false })
  pdf.y += 14
}

function newPage(pdf: PDFDocument): void {
  pdf.addPage()
  pdf.y = 50
}

/** Its head is repeated on each page. What does not fit into three lines of a cell ends with an ellipsis. */
function table(
  pdf: PDFDocument,
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  isBold: (row: readonly string[]) => boolean = () => false,
): void {
  const write = (cells: readonly string[], font: string, color: string) => {
    const { y } = pdf
    pdf.font(font).fontSize(9).fillColor(color)
    let below = y
    columns.forEach(({ x, width, isRight }, at) => {
      pdf.text(lettersOf(pdf, cells[at] ?? ''), x, y, {
        width,
        height: CELL_MAX,
        align: isRight ? 'right' : 'left',
        ellipsis: true,
      })
      below = Math.max(below, pdf.y)
    })
    pdf.y = below + GAP
  }
  const writeHead = () => {
    write(
      columns.map((column) => column.head),
      'regular',
      GREY,
    )
    pdf
      .moveTo(LEFT, pdf.y - 4)
      .lineTo(RIGHT, pdf.y - 4)
      .lineWidth(0.5)
      .stroke(RULE)
    pdf.y += 2
  }
  writeHead()
  for (const row of rows) {
    if (pdf.y > BOTTOM - LINE) {
      newPage(pdf)
      writeHead()
    }
    write(row, isBold(row) ? 'bold' : 'regular', BLACK)
  }
}

/** With all six decimals, so that decimal points are aligned. */
function exact(amount: bigint): string {
  const [whole = '', fraction = ''] = formatCredits(amount).split('.')
  return grouped(`${whole}.${fraction.padEnd(6, '0')}`)
}

/** "1,234.5" */
function grouped(decimal: string): string {
  return decimal.replace(/^(-?)(\d+)/, (_, sign: string, whole: string) => sign + BigInt(whole).toLocaleString('en'))
}
