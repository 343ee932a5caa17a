/** Whether every database can keep a text as it is; it may have lines. */
export function isText(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

/** Whether a text stays on one line: no ASCII control characters (U+0000 to U+001F, U+007F), no half surrogate pairs. */
export function isLine(text: string): boolean {
  return text.isWellFormed() && /^[\u0020-\u007e\u0080-\uffff]*$/.test(text);
}

/** As `isLine`, and no spaces: what an address may be made of. */
export function isUnbroken(text: string): boolean {
  return isLine(text) && !text.includes(" ");
}
