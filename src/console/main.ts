/** Starts the console in the page that loaded it. */
import { App } from './app.ts'

const app = new App({
  tools: place('tools'),
  tasks: place('tasks'),
  header: place('header'),
  announcements: place('announcements'),
})
void app.connect()

function place(id: string): HTMLElement {
  const element = document.getElementById(id)
  if (!element) throw new Error(`The page has no place #${id}.`)
  return element
}
