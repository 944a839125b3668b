/** Where the bytes of an import come from: a text that came with the call, or an R2 object read in ranges. */
import { NonRetryableError } from '../tool'

export interface Source {
  /** In bytes. */
  readonly size: number
  /** Fewer bytes than asked for only at the end. */
  read(offset: number, length: number): Promise<Uint8Array>
}

export function textSource(text: string): Source {
  const bytes = new TextEncoder().encode(text)
  return { size: bytes.length, read: async (offset, length) => bytes.subarray(offset, offset + length) }
}

/** One version of an object; recorded, so that every run reads the same one. */
export type ObjectVersion = { readonly key: string; readonly size: number; readonly etag: string }

export async function findObject(bucket: R2Bucket, key: string): Promise<ObjectVersion | null> {
  const object = await bucket.head(key)
  return object && { key, size: object.size, etag: object.etag }
}

export function objectSource(bucket: R2Bucket, { key, size, etag }: ObjectVersion): Source {
  return {
    size,
    read: async (offset, length) => {
      const range = { offset, length: Math.min(length, size - offset) }
      if (range.length <= 0) return new Uint8Array()
      const object = await bucket.get(key, { range, onlyIf: { etagMatches: etag } })
      if (!object || !('body' in object)) {
        throw new NonRetryableError(`${key} was replaced or deleted while it was being imported.`)
      }
      return new Uint8Array(await object.arrayBuffer())
    },
  }
}
