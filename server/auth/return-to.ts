/** Where users land after signing in without a return URL. */
export const HOME = "/dashboard";

// One slash, not followed by another: browsers read "//host" and "/\\host" as another host. No control characters, because
// browsers drop them.
const OWN_PATH = /^\/(?![/\\])[\x21-\x7e]*$/;
// Pages that require a session. No others: a short link redirects to any site its owner chose.
const PAGES = /^\/(dashboard($|\/)|interaction\/)/;
// Any origin works: resolving against it shows whether the path would leave the origin.
const PROBE = "https://own.invalid";

/** Returns the path to open after signing in: the given one if it is a page that requires a session, else `HOME`. */
export function safeReturnTo(text: unknown): string {
  if (typeof text !== "string" || !OWN_PATH.test(text)) return HOME;
  const url = URL.parse(text, PROBE);
  if (url?.origin !== PROBE || !PAGES.test(url.pathname)) return HOME;
  return url.pathname + url.search;
}
