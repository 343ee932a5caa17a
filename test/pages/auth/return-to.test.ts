import test from "ava";
import { browserOf } from "../../harness/clients/dashboard.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { startWithProvider } from "../../harness/providers/identity-provider.ts";
import { postForm } from "../../harness/service.ts";

const { provider, service } = await startWithProvider();

const HOME = "/dashboard";
const urlOf = (path: string, returnTo: string) =>
  `${service.url}${path}?${new URLSearchParams({ return_to: returnTo })}`;

async function locationOf(path: string, fields: Record<string, string>): Promise<string | null> {
  const headers = { accept: "text/html", origin: service.url };
  return (await postForm(service.url + path, fields, headers)).headers.get("location");
}

/** Returns where a page of a signed-in user redirects to. */
const redirectOf = (path: string) => async (returnTo: string) => {
  const { browser } = await browserOf(service, await service.createUser([]));
  browser.follows = false;
  const { status, headers } = await browser.open(urlOf(path, returnTo));
  return status === 303 ? headers.get("location") : null;
};

/** Where the ways to sign in redirect to. */
const WAYS: Record<string, (returnTo: string) => Promise<string | null>> = {
  async password(return_to) {
    const { username, password } = await service.createUser([]);
    return locationOf("/auth/login", { username, password, return_to });
  },
  async registration(return_to) {
    const { username, password } = await service.createUser([]);
    return locationOf("/auth/register", { username: `${username}-2`, password, return_to });
  },
  "sign-in page of a signed-in user": redirectOf("/auth/login"),
  "registration page of a signed-in user": redirectOf("/auth/register"),
  async "identity provider"(returnTo) {
    const browser = new TestBrowser(service.url);
    const back = await provider.answer(await browser.open(urlOf("/auth/sso", returnTo)));
    browser.follows = false;
    return (await browser.open(back)).headers.get("location");
  },
  async "hidden field of the page"(returnTo) {
    const page = await new TestBrowser(service.url).open(urlOf("/auth/login", returnTo));
    return page.html.querySelector("[name=return_to]")?.attributes.value ?? null;
  },
  async "link from the registration"(returnTo) {
    const page = await new TestBrowser(service.url).open(urlOf("/auth/register", returnTo));
    const link = page.html.querySelector("a[href^='/auth/login?']")?.attributes.href ?? "";
    return new URL(link, service.url).searchParams.get("return_to");
  },
};

for (const [way, lead] of Object.entries(WAYS))
  test(`after signing in, the ${way} redirects only to pages of this service`, async (t) => {
    for (const target of ["https://evil.example/", "//evil.example/", "/evil", "/\\evil.example/", ""])
      t.is(await lead(target), HOME, target);
    t.is(await lead("/dashboard/account#password"), "/dashboard/account#password");
  });
