import { describe, expect, test } from 'vitest'
import { rpc, start, untilEnded } from '../client'
import { textOf } from './questions'

describe('run_ci_pipeline', () => {
  test('says what to configure when no CI server is', async () => {
    const task = await untilEnded(await start('run_ci_pipeline', { commit: '0a1b2c3d' }))
    expect(task).toMatchObject({ status: 'completed', result: { isError: true } })
    expect(textOf(task)).toContain('Set the variable CI_ENDPOINT')
  })

  test.each([
    ['a commit that is no hexadecimal id', { commit: 'main' }],
    ['a short commit', { commit: 'abc' }],
    ['a pipeline name with a blank', { commit: '0a1b2c3d', pipeline: 'my pipeline' }],
  ])('refuses %s before a task exists', async (_, args) => {
    const { body } = await rpc('tools/call', { name: 'run_ci_pipeline', arguments: args })
    expect(body.result).toMatchObject({ resultType: 'complete', isError: true })
    expect(body.result.content[0].text).toContain('expected')
  })
})
