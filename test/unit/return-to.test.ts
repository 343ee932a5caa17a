import test from "ava";
import { HOME, safeReturnTo } from "../../server/http/redirects.ts";

const ELSEWHERE: Record<string, unknown> = {
  "another site": "https://evil.example/",
  "another site without a scheme": "//evil.example/",
  "a backslash instead of a slash": "/\\evil.example/",
  "a scheme without slashes": "https:evil.example",
  "the own origin as user info of another": "https://links.example@evil.example/",
  "an absolute URL of the own origin": "https://links.example/dashboard/account",
  "a tab that browsers drop": "/\t/evil.example/",
  "a line break before another header": "/dashboard\r\nset-cookie: session=evil",
  "dots that lead to two slashes": "/dashboard/..//evil.example/",
  "a backslash after an own page": "/dashboard/..\\\\evil.example/",
  "a script": "javascript:alert(1)",
  "a short link, which redirects anywhere": "/evil",
  "dots that lead to a short link": "/dashboard/../evil",
  "a name that starts like a page": "/dashboards",
  "the sign-in page itself": "/auth/login?return_to=/dashboard/account",
  "a relative URL": "evil.example",
  "several values": ["/dashboard/account", "//evil.example/"],
};

test("return addresses lead to pages of this service only", (t) => {
  for (const [what, target] of Object.entries(ELSEWHERE)) t.is(safeReturnTo(target), HOME, what);
});

test("pages that require a session, and authorizations without their fragment, are accepted as they are", (t) => {
  for (const path of [
    ...["/dashboard", "/dashboard/account?done=password-changed", "/dashboard/account#password"],
    ...["/dashboard/organizations/new", "/interaction/x", "/oauth/authorize?client_id=x"],
  ])
    t.is(safeReturnTo(path), path);
  t.is(safeReturnTo("/oauth/authorize?a=b#fragment"), "/oauth/authorize?a=b");
});
