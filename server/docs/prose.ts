import { type Html, html } from "../html.ts";

/** A text of the document, where words in backticks are code. */
export function prose(text: string): Html {
  return html`${text.split("`").map((part, index) => (index % 2 ? html`<code>${part}</code>` : part))}`;
}

/** A code that is explained further down, as a link to there. */
export function codeLink(code: string): Html {
  return html`<a href="#${code}"><code>${code}</code></a>`;
}

/** Something to paste, or to compare with; it can be scrolled with the keyboard where it is wider than the page. */
export function listing(label: string, code: string): Html {
  return html`<pre tabindex="0" role="region" aria-label="${label}"><code>${code}</code></pre>`;
}

/** JSON as people read it. */
export function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
