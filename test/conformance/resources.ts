/** Resources of the core scenarios: text, binary and a template. */
import { type McpServer, ResourceTemplate } from '@modelcontextprotocol/server'
import { RED_DOT_PNG } from './media'

export function registerResources(server: McpServer): void {
  server.registerResource(
    'static-text',
    'test://static-text',
    { description: 'A text that stays the same.', mimeType: 'text/plain', cacheHint: FOR_AN_HOUR },
    ({ href }) => ({
      contents: [
        { uri: href, mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
      ],
    }),
  )
  server.registerResource(
    'static-binary',
    'test://static-binary',
    { description: 'An image that stays the same.', mimeType: 'image/png', cacheHint: FOR_AN_HOUR },
    ({ href }) => ({ contents: [{ uri: href, mimeType: 'image/png', blob: RED_DOT_PNG }] }),
  )
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { description: 'Data by id.', mimeType: 'application/json' },
    ({ href }, { id }) => ({
      contents: [
        {
          uri: href,
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }),
        },
      ],
    }),
  )
}

const FOR_AN_HOUR = { ttlMs: 3_600_000, cacheScope: 'public' as const }
