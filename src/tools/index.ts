/** The tools that come with the deployable Worker. */
import type { Tool } from '../index'
import { deleteFiles } from './delete-files'
import { importBatch } from './import-batch'
import { requestApproval } from './request-approval'
import { runCiPipeline } from './run-ci-pipeline'
import { runMigration } from './run-migration'

export const tools: readonly Tool[] = [runMigration, deleteFiles, importBatch, runCiPipeline, requestApproval]
