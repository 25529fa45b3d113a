// The name of a label, wherever one is read.

/** Letters of ASCII first, so that a list of names and values is read without quoting. */
export const LABEL_NAME = /^[A-Za-z][\w.:/-]{0,63}$/
/**
 * The same where labels of calls are read: the team, the project and the member of a call's key, and the part of an
 * agent's run, are labels too.
 */
export const STORED_LABEL = /^(?:[A-Za-z][\w.:/-]{0,63}|:team|:project|:member|:agent|:parent)$/
