/** The words of a text: for long lists of names, which would take a line each. */
export const words = (text: string): readonly string[] => text.match(/\S+/g) ?? []
