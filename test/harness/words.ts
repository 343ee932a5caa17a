/** Returns the words of a text, of one line or of several. */
export const words = (text: string) => text.trim().split(/\s+/);
