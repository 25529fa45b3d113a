// What of the library is used here. Its own types name those of a package that is not ours to import.
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
