/** Where people are who have signed in and wanted nothing in particular. */
export const HOME = "/dashboard";

// One slash, then no other one: browsers take "//host" and "/\\host" for another host. No control characters, which they drop.
const OWN_PATH = /^\/(?![/\\])[\x21-\x7e]*$/;
// Pages that ask for a sign-in. No others: our short links lead to wherever their makers please.
const PAGES = /^\/(dashboard($|\/)|interaction\/)/;
// Any origin will do: it only shows whether the path would leave it.
const PROBE = "https://own.invalid";

/** The address to go to after signing in, if it is a page of ours that waits for that; home otherwise. */
export function safeReturnTo(text: unknown): string {
  if (typeof text !== "string" || !OWN_PATH.test(text)) return HOME;
  const url = URL.parse(text, PROBE);
  if (url?.origin !== PROBE || !PAGES.test(url.pathname)) return HOME;
  return url.pathname + url.search;
}
