// What of the library is used here. Its own package has no types.
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
