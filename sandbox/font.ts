// A face of five by seven dots, drawn for the sandbox's pictures. Each letter is seven characters, one a row from the
// top; a character is a number in base 32 whose five bits are the dots from left to right.

export const GLYPH_WIDTH = 5
export const GLYPH_HEIGHT = 7
/** From one letter to the next, and from one line to the next. */
export const ADVANCE = 6
export const LINE_ADVANCE = 9

const ROWS = [
  '0000000 4444404 aaa0000 aavavaa 4fke5u4 op248j3 cik8lid 4480000 2488842 8422248 04lel40 044v440 0000c48 000v000 00000cc 11248gg',
  'ehjlphe 4c4444e eh1248v v2421he 26aiv22 vgu11he 68guhhe v124888 ehhehhe ehhf12c 0cc0cc0 0cc0c48 248g842 00v0v00 8421248 eh12404',
  'eh1dlle ehhvhhh uhhuhhu ehggghe sihhhis vgguggv vgguggg ehgnhhf hhhvhhh e44444e 72222ic hikokih ggggggv hrllhhh hhpljhh ehhhhhe',
  'uhhuggg ehhhlid uhhukih fgge11u v444444 hhhhhhe hhhhha4 hhhllla hha4ahh hhha444 v1248gv e88888e gg84211 e22222e 4ah0000 000000v',
  '8420000 00e1fhf ggmphhu 00egghe 11djhhf 00ehvge 698s888 0fhhf1e ggmphhh 40c444e 20622ic ggikoki c44444e 00qllhh 00mphhh 00ehhhe',
  '00uhugg 00djf11 00mpggg 00ege1u 88s8896 00hhhjd 00hhha4 00hhlla 00ha4ah 00hhf1e 00v248v 2448442 4444444 8442448 008l200',
]

const GLYPHS: readonly (readonly number[])[] = ROWS.flatMap((row) => row.split(' ')).map((glyph) =>
  [...glyph].map((digit) => Number.parseInt(digit, 32)),
)
/** An empty frame, for letters that this face does not have. */
const UNKNOWN = [31, 17, 17, 17, 17, 17, 31]

/** The seven rows of a letter. */
export function glyphOf(char: string): readonly number[] {
  return GLYPHS[(char.codePointAt(0) ?? 0) - 0x20] ?? UNKNOWN
}

const PLAIN: Readonly<Record<string, string>> = {
  '“': '"',
  '”': '"',
  '‘': "'",
  '’': "'",
  '–': '-',
  '—': '-',
  '…': '...',
  '×': 'x',
  ß: 'ss',
  ø: 'o',
  Ø: 'O',
  æ: 'ae',
  ł: 'l',
}

/** Accents are dropped and typographic marks made plain, so that most Latin text can be drawn. */
export function drawable(text: string): string {
  return text
    .replace(/[“”‘’–—…×ßøØæł]/g, (mark) => PLAIN[mark] ?? mark)
    .normalize('NFD')
    .replace(/\p{M}/gu, '')
    .replace(/\s+/g, ' ')
}

/** Lines of at most so many letters, broken between words; a word that is too long is broken itself. */
export function wrap(text: string, columnsWanted: number): string[] {
  const columns = Math.max(1, columnsWanted)
  const lines: string[] = []
  let line = ''
  for (const word of [...drawable(text).matchAll(/\S+/g)].map((match) => match[0])) {
    let rest = [...word]
    while (line !== '' ? line.length + 1 + rest.length > columns : rest.length > columns) {
      if (line !== '') {
        lines.push(line)
        line = ''
        continue
      }
      lines.push(rest.slice(0, columns).join(''))
      rest = rest.slice(columns)
    }
    line = line === '' ? rest.join('') : `${line} ${rest.join('')}`
  }
  if (line !== '') lines.push(line)
  return lines
}
