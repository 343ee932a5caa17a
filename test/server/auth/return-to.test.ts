import test from "ava";
import { browserOf } from "../../harness/clients/dashboard.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import {
  providerSettings,
  signInExternally,
  startMockProvider,
} from "../../harness/providers/identity-provider.ts";
import { startTestService } from "../../harness/service.ts";

const provider = await startMockProvider();
const service = await startTestService(providerSettings(provider.issuer));
test.after.always(async () => {
  await service.close();
  await provider.stop();
});

const HOME = "/dashboard";

const ELSEWHERE: Record<string, string> = {
  "another site": "https://evil.example/",
  "another site without a scheme": "//evil.example/",
  "three slashes": "///evil.example/",
  "a backslash instead of a slash": "/\\evil.example/",
  "two backslashes": "\\\\evil.example/",
  "a scheme without slashes": "https:evil.example",
  "the own origin as user info of another": `${service.url}@evil.example/`,
  "an absolute URL of the own origin": `${service.url}/dashboard/account`,
  "a tab that browsers drop": "/\t/evil.example/",
  "a line break that browsers drop": "/\n/evil.example/",
  "a line break before another header": "/dashboard\r\nset-cookie: session=evil",
  "dots that lead to two slashes": "/dashboard/..//evil.example/",
  "encoded dots that lead to two slashes": "/dashboard/%2e%2e//evil.example/",
  "a backslash after an own page": "/dashboard/..\\\\evil.example/",
  "a script": "javascript:alert(1)",
  data: "data:text/html,<script>alert(1)</script>",
  "a short link, which redirects anywhere": "/evil",
  "dots that lead to a short link": "/dashboard/../evil",
  "a name that starts like a page": "/dashboards",
  "the sign-in page itself": "/auth/login?return_to=/dashboard/account",
  "a relative URL": "evil.example",
  nothing: "",
};

const OURS = [
  "/dashboard",
  "/dashboard/account",
  "/dashboard/account?done=password-changed",
  "/dashboard/account#password",
  "/dashboard/organizations/new",
];

/** Where the five ways to sign in redirect to. */
const WAYS: Record<string, (returnTo: string) => Promise<string | null>> = {
  async password(returnTo) {
    const { username, password } = await service.createUser([]);
    return locationOf("/auth/login", { username, password, return_to: returnTo });
  },
  async registration(returnTo) {
    const { username, password } = await service.createUser([]);
    return locationOf("/auth/register", { username: `${username}-2`, password, return_to: returnTo });
  },
  async "sign-in page of a signed-in user"(returnTo) {
    const { browser } = await browserOf(service, await service.createUser([]));
    const url = `${service.url}/auth/login?${new URLSearchParams({ return_to: returnTo })}`;
    const headers = { accept: "text/html", cookie: await browser.jar.getCookieString(url) };
    return (await fetch(url, { headers, redirect: "manual" })).headers.get("location");
  },
  async "identity provider"(returnTo) {
    const browser = new TestBrowser(service.url);
    const away = await browser.open(
      `${service.url}/auth/sso?${new URLSearchParams({ return_to: returnTo })}`,
    );
    const back = await provider.answer(away);
    const headers = { cookie: await browser.jar.getCookieString(back) };
    return (await fetch(back, { headers, redirect: "manual" })).headers.get("location");
  },
  async "hidden field of the page"(returnTo) {
    const page = await new TestBrowser(service.url).open(
      `${service.url}/auth/login?${new URLSearchParams({ return_to: returnTo })}`,
    );
    return page.html.querySelector("[name=return_to]")?.attributes.value ?? null;
  },
};

async function locationOf(path: string, fields: Record<string, string>): Promise<string | null> {
  const answer = await fetch(service.url + path, {
    method: "POST",
    body: new URLSearchParams(fields),
    headers: { accept: "text/html", origin: service.url },
    redirect: "manual",
  });
  return answer.headers.get("location");
}

for (const [way, lead] of Object.entries(WAYS)) {
  test(`after signing in, the ${way} redirects only to pages of this service`, async (t) => {
    for (const [what, target] of Object.entries(ELSEWHERE)) t.is(await lead(target), HOME, what);
    for (const target of OURS) t.is(await lead(target), target);
  });
}

test("if there are several return URLs, none is used", async (t) => {
  const query = "return_to=/dashboard/account&return_to=//evil.example/";
  const page = await new TestBrowser(service.url).open(`${service.url}/auth/login?${query}`);
  t.is(page.html.querySelector("[name=return_to]")?.attributes.value, HOME);
  const browser = new TestBrowser(service.url);
  t.true(
    (await signInExternally(service, provider, browser, `?${query}`)).url.startsWith(
      `${service.url}/dashboard`,
    ),
  );
});

test("links between sign-in and registration carry only validated return URLs", async (t) => {
  const page = await new TestBrowser(service.url).open(
    `${service.url}/auth/register?return_to=//evil.example/`,
  );
  const hrefs = page.html.querySelectorAll("a").map(({ attributes }) => attributes.href ?? "");
  t.true(hrefs.length >= 2);
  for (const href of hrefs) t.false(decodeURIComponent(href).includes("evil"), href);
});
