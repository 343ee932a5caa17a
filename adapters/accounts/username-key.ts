/** Returns the form of a username that is unique. */
export function normalizeUsername(username: string): string {
  return username.normalize("NFKC").toLowerCase();
}
