/** How the page behind an answer link looks: light and dark, on a phone and on a desk. */
export const STYLE = `
:root {
  color-scheme: light dark;
  --ink: light-dark(#1c1c1f, #ececf0);
  --soft: light-dark(#5c5c66, #a5a5b0);
  --paper: light-dark(#fff, #1e1e22);
  --back: light-dark(#f3f3f6, #131316);
  --line: light-dark(#c9c9d2, #44444d);
  --strong: light-dark(#1b4fd1, #9db8ff);
  --on-strong: light-dark(#fff, #0b1b45);
  --bad: light-dark(#a8180f, #ffa79f);
}
* {
  box-sizing: border-box;
}
body {
  margin: 0;
  padding: 1rem;
  background: var(--back);
  color: var(--ink);
  font:
    1rem/1.5 system-ui,
    sans-serif;
  overflow-wrap: anywhere;
}
main {
  max-width: 38rem;
  margin: 4vh auto;
  padding: 1.5rem;
  background: var(--paper);
  border: 1px solid var(--line);
  border-radius: 0.75rem;
}
h1 {
  margin: 0 0 1rem;
  font-size: 1.5rem;
  line-height: 1.25;
}
.from,
.note,
.hint,
.optional {
  color: var(--soft);
  font-size: 0.875rem;
}
.from {
  margin: 0 0 0.25rem;
}
.note {
  margin: 1rem 0 0;
}
.details {
  white-space: pre-wrap;
  padding: 0.75rem 1rem;
  border-inline-start: 3px solid var(--line);
}
dl {
  display: grid;
  gap: 0.25rem 1rem;
  margin: 1rem 0;
}
dt {
  color: var(--soft);
}
dd {
  margin: 0;
}
@media (min-width: 30rem) {
  dl {
    grid-template-columns: max-content 1fr;
  }
}
.answer {
  font-weight: 600;
}
.problem {
  color: var(--bad);
}
label,
fieldset {
  display: block;
  margin: 1rem 0;
}
fieldset {
  border: 1px solid var(--line);
  border-radius: 0.5rem;
}
.hint {
  display: block;
}
.check {
  display: flex;
  gap: 0.5rem;
  align-items: baseline;
}
textarea,
select,
input[type='text'] {
  display: block;
  width: 100%;
  margin-top: 0.25rem;
  padding: 0.625rem;
  font: inherit;
  color: inherit;
  background: var(--paper);
  border: 1px solid var(--soft);
  border-radius: 0.5rem;
}
.buttons {
  display: flex;
  flex-wrap: wrap;
  gap: 0.75rem;
  margin-top: 1.25rem;
}
.buttons button {
  flex: 1 1 8rem;
  min-height: 3rem;
  font: inherit;
  font-weight: 600;
  cursor: pointer;
  color: var(--strong);
  background: var(--paper);
  border: 2px solid var(--strong);
  border-radius: 0.5rem;
}
.buttons button:first-child {
  color: var(--on-strong);
  background: var(--strong);
}
:focus-visible {
  outline: 3px solid var(--strong);
  outline-offset: 2px;
}
`
