import { words } from './lists.ts'

/** Spellings of the addresses at which clouds tell a machine its credentials. */
export const METADATA_HOSTS = words(`
  169.254.169.254 169.254.170.2 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.169.254. [fd00:ec2::254]
  [::ffff:169.254.169.254] [::ffff:a9fe:a9fe] [64:ff9b::a9fe:a9fe] metadata.google.internal
`)
