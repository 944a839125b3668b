import { expect, test } from 'vitest'
import { counted, elapsed, size } from '../../../src/tools/wording'

test.each([
  [0, '0 rows'],
  [1, '1 row'],
  [12_345, '12,345 rows'],
])('%i rows are %s', (count, text) => expect(counted(count, 'row')).toBe(text))

test.each([
  [0, '0 bytes'],
  [999, '999 bytes'],
  [1_000, '1.0 KB'],
  [56_249_000, '56.2 MB'],
  [3e15, '3000.0 TB'],
])('%i bytes are %s', (bytes, text) => expect(size(bytes)).toBe(text))

test.each([
  [0, '0 ms'],
  [999, '999 ms'],
  [12_340, '12.3 s'],
  [59_949, '59.9 s'],
  [59_960, '1m00s'],
  [252_000, '4m12s'],
  [3_900_000, '1h05m'],
])('%i ms are %s', (ms, text) => expect(elapsed(ms)).toBe(text))
