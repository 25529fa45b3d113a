// The name of a label, wherever one is read.

/** Letters of ASCII first, so that a list of names and values is read without quoting. */
export const LABEL_NAME = /^[A-Za-z][\w.:/-]{0,63}$/
