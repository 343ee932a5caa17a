const ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** HTML whose interpolated values are escaped. */
export class Html {
  readonly #markup: string;

  constructor(markup: string) {
    this.#markup = markup;
  }

  toString(): string {
    return this.#markup;
  }
}

/**
 * Template tag that escapes every interpolated value except `Html` and arrays of `Html`, for text and quoted attributes.
 * False, null and undefined are left out, so a part can depend on a condition: `${hasNext && nextLink}`.
 */
export function html(parts: TemplateStringsArray, ...values: unknown[]): Html {
  return new Html(String.raw({ raw: parts }, ...values.map(toMarkup)));
}

/** Marks markup as HTML that needs no escaping. Only for markup that a library has rendered from escaped values. */
export function trusted(markup: string): Html {
  return new Html(markup);
}

function toMarkup(value: unknown): string {
  if (value instanceof Html) return value.toString();
  if (Array.isArray(value)) return value.map(toMarkup).join("");
  if (value === false || value === null || value === undefined) return "";
  return String(value).replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
}
