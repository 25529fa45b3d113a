// Types of packages without usable types of their own: only the parts that are used here.

// Its own types name those of a package that is not ours to import.
declare module 'hyparquet-writer' {
  interface Column {
    readonly name: string
    readonly data: readonly unknown[]
    readonly type: 'STRING' | 'INT32' | 'INT64' | 'DOUBLE' | 'BOOLEAN' | 'JSON' | 'TIMESTAMP'
    readonly nullable?: boolean
  }
  export function parquetWriteBuffer(options: {
    readonly columnData: readonly Column[]
    readonly createdBy?: string
    readonly rowGroupSize?: number
  }): ArrayBuffer
}

declare module 'pdfkit' {
  interface TextOptions {
    readonly width?: number
    readonly height?: number
    readonly align?: 'left' | 'right'
    readonly lineBreak?: boolean
    readonly ellipsis?: boolean
    readonly lineGap?: number
  }

  export default class PDFDocument {
    readonly page: { readonly width: number; readonly height: number; readonly margins: { bottom: number } }
    y: number
    /** The current one. The library has no other way to ask what it can show. */
    readonly _font: { readonly font: { hasGlyphForCodePoint(code: number): boolean } }
    constructor(options: Readonly<Record<string, unknown>>)
    on(event: 'data', run: (chunk: Buffer) => void): this
    on(event: 'end' | 'error', run: (error?: Error) => void): this
    registerFont(name: string, font: Buffer): this
    font(name: string): this
    fontSize(size: number): this
    fillColor(color: string): this
    text(text: string, x: number, y: number, options?: TextOptions): this
    image(bytes: Buffer, x: number, y: number, options: { readonly fit: readonly [number, number] }): this
    heightOfString(text: string, options?: TextOptions): number
    moveTo(x: number, y: number): this
    lineTo(x: number, y: number): this
    lineWidth(width: number): this
    stroke(color: string): this
    addPage(): this
    file(content: Buffer, options: Readonly<Record<string, unknown>>): unknown
    /** Into the metadata. */
    appendXML(xml: string): void
    bufferedPageRange(): { readonly start: number; readonly count: number }
    switchToPage(page: number): void
    end(): void
  }
}
