import { type Html, html } from "../ui/html.ts";

/** Renders a description of the OpenAPI document; text in backticks becomes code. */
export function prose(text: string): Html {
  return html`${text.split("`").map((part, index) => (index % 2 ? html`<code>${part}</code>` : part))}`;
}

/** Renders an error code as a link to its explanation. */
export function codeLink(code: string): Html {
  return html`<a href="#${code}"><code>${code}</code></a>`;
}

/** Renders a block of code that the keyboard can scroll. */
export function listing(label: string, code: string): Html {
  return html`<pre tabindex="0" role="region" aria-label="${label}"><code>${code}</code></pre>`;
}

/** Formats a value as indented JSON. */
export function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
