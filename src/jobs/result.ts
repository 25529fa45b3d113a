// Finished files are copied to our own store before a job is said to be completed, because the vendor's addresses die.

export interface ResultStore {
  /** Copies a file and answers its id in the store. `trusted` is the vendor's own address, which may be a private one. */
  copy(
    url: string,
    options: { readonly type: 'video' | 'image'; readonly account: string; readonly trusted: string },
  ): Promise<string>
  /** An address at which anybody who has it can fetch the file, for a while. */
  url(id: string): string
}
