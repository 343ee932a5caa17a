import test from "ava";
import type { Context } from "koa";
import { checkCsrf, checkOrigin, createCsrf, maskCsrf } from "../../server/http/csrf.ts";

const OWN = "https://links.example.com";

function check(headers: Record<string, string>): void {
  checkOrigin({ get: (name: string) => headers[name] ?? "" } as unknown as Context, OWN);
}

const CROSS_SITE: Record<string, Record<string, string>> = {
  "from another origin": { origin: "https://evil.example" },
  "from a page without an origin": { origin: "null" },
  "from another origin that contains the own host": { origin: `${OWN}.evil.example` },
  "from another site": { origin: "null", "sec-fetch-site": "cross-site" },
  "from another origin of the same site": { origin: "https://example.com", "sec-fetch-site": "same-site" },
  "from another site, with the own origin": { origin: OWN, "sec-fetch-site": "cross-site" },
  "from no page": { origin: OWN, "sec-fetch-site": "none" },
};

test("a change that isn't from an own page or a program is refused", (t) => {
  for (const [what, headers] of Object.entries(CROSS_SITE))
    t.throws(() => check(headers), { code: "cross_site_request" }, what);
  for (const headers of [{ origin: OWN }, { origin: "null", "sec-fetch-site": "same-origin" }, {}])
    t.notThrows(() => check(headers));
});

test("a token is valid for its purpose, and none that is missing, empty, cut off, made up or of another", (t) => {
  const csrf = createCsrf("a secret of the server");
  const token = csrf.token("session 1");
  t.notThrows(() => checkCsrf(csrf, token, "session 1"));
  const masked = [maskCsrf(token), maskCsrf(token)];
  t.not(masked[0], masked[1]);
  for (const one of masked) t.notThrows(() => checkCsrf(csrf, one, "session 1"));
  t.throws(() => checkCsrf(csrf, masked[0], "session 2"));
  const others = [csrf.token("session 2"), createCsrf("another secret").token("session 1")];
  for (const wrong of [undefined, "", 7, "AAAA", "a".repeat(43), token.slice(0, -2), ...others])
    t.throws(() => checkCsrf(csrf, wrong, "session 1"), { code: "invalid_csrf_token" }, String(wrong));
});
