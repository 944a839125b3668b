/** The deployable Worker: our tools, and the daily sweep of their marks. */
import { version } from '../package.json'
import { toMs } from './duration'
import { createLonghaul, sweepMarks } from './index'
import { tools } from './tools'

const longhaul = createLonghaul({ name: 'longhaul', title: 'Longhaul', version, tools })

/** Past the longest time-to-live a task may have (30 days) and its retention: nobody asks for these any more. */
const MARKS_KEPT_MS = toMs('45 days')

export { TaskObject, TenantObject } from './index'
export default {
  ...longhaul,
  async scheduled(_controller, env) {
    const swept = await sweepMarks(env.DB, MARKS_KEPT_MS)
    console.log(JSON.stringify({ event: 'marks_swept', count: swept }))
  },
} satisfies ExportedHandler<Cloudflare.Env>
