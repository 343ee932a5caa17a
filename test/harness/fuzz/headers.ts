/** Returns the headers that have a value, without what an HTTP client can't send. Other characters are sent in UTF-8. */
export function toHeaders(values: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values)
      .filter(([name, value]) => /^[A-Za-z-]+$/.test(name) && value !== undefined)
      .map(([name, value]) => [name.toLowerCase(), toFieldValue(String(value))]),
  );
}

function toFieldValue(text: string): string {
  return Buffer.from(text)
    .toString("latin1")
    .replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, "");
}
