export const HOME = "/dashboard";

// Browsers read "//host" and "/\\host" as another host, and drop control characters.
const OWN_PATH = /^\/(?![/\\])[\x21-\x7e]*$/;
// Authorization requests, and pages that require a session. No others: a short link redirects to any site its owner chose.
const PAGES = /^\/(dashboard($|\/)|interaction\/|oauth\/authorize$)/;
// Any origin works: resolving against it shows whether the path would leave the origin.
const PROBE = "https://own.invalid";

/** Returns `HOME` unless the path is an authorization request, or a page that requires a session. */
export function safeReturnTo(text: unknown): string {
  if (typeof text !== "string" || !OWN_PATH.test(text)) return HOME;
  const url = URL.parse(text, PROBE);
  if (url?.origin !== PROBE || !PAGES.test(url.pathname)) return HOME;
  // An authorization request gets no fragment, which redirects would pass on to the app.
  return url.pathname + url.search + (url.pathname.startsWith(HOME) ? url.hash : "");
}
