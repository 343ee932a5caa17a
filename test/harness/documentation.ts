/** What readers search the documentation for → the pages, one of which answers it. */
export const ANSWERS: Record<string, RegExp> = {
  token: /^\/docs\/(authentication|authorization|quick-start)\b/,
  "rate limits": /^\/docs\/rate-limits\b/,
  countries: /^\/docs\/(analytics|settings|api\/get-(link-)?analytics)\b/,
  retries: /^\/docs\/(webhooks|requests)\b/,
  slug_taken: /^\/docs\/errors\/slug_taken$/,
  "verify signature": /^\/docs\/(webhooks|verify)/,
  "github actions": /^\/docs\/workload-identity\b/,
  "custom domain": /^\/docs\/(custom-domains|settings|operations)\b/,
};
