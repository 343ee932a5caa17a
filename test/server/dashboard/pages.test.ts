import { mkdir } from "node:fs/promises";
import test, { type ExecutionContext } from "ava";
import type { Browser, Page } from "playwright-core";
import { COLOUR_RULES, violationsOf } from "../../harness/axe.ts";
import { openPage, useChromium } from "../../harness/chromium.ts";
import { createGallery, LOCAL_APP } from "../../harness/gallery.ts";
import { providerSettings, startWithProvider } from "../../harness/identity-provider.ts";
import { authorizeUrl } from "../../harness/oauth.ts";
import { freePort } from "../../harness/port.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { startTestService } from "../../harness/service.ts";

/** With a folder here, a picture of every page is put there, at each width in each scheme. */
const { SCREENSHOTS } = process.env;
const WIDTHS = [1440, 360];
const SCHEMES = ["light", "dark"] as const;
// The browser takes minutes for a picture of a page that is much longer.
const PICTURE_MAX = 12_000;

const receiver = await startReceiver();
const { service, close } = await startWithProvider({
  WEBHOOK_ALLOW_HOSTS: new URL(receiver.url("/")).hostname,
});
const gallery = await createGallery(service, receiver);
// A service that people cannot help themselves at, whose identity provider is away.
const strict = await startTestService({
  ...providerSettings(`http://localhost:${await freePort()}`),
  REGISTRATION: "closed",
  SELF_SERVICE_PLANS: "off",
});
if (SCREENSHOTS) await mkdir(SCREENSHOTS, { recursive: true });

test.after.always(async () => {
  await Promise.all([close(), strict.close()]);
  await receiver.close();
});
const inChromium = useChromium();

const { people, organization, second, started, studio, flows } = gallery;
const [own, ownEmpty, ownFresh] = [organization, second, started].map(
  ({ id }) => `/dashboard/organizations/${id}`,
);

type Who = keyof typeof people | "visitor";
type Open = string | ((page: Page) => Promise<unknown>);

const at = (path: string) => new URL(path, service.url).href;
const press = (page: Page, name: string | RegExp) => page.getByRole("button", { name }).first().click();
const alert = (page: Page) => page.locator("[role=alert]").waitFor();

/** Opens an address, then does something there. */
function then(path: string, act: (page: Page) => Promise<unknown>): Open {
  return async (page) => {
    await page.goto(at(path));
    await act(page);
  };
}

async function fill(page: Page, fields: Record<string, string>) {
  for (const [name, value] of Object.entries(fields)) await page.locator(`[name=${name}]`).fill(value);
}

async function newSecret(page: Page) {
  await press(page, "Make a new secret");
  await page.locator(".copyable").first().waitFor();
}

async function resetLink(): Promise<string> {
  return `/auth/reset-password/${await service.storage.accounts.createResetToken(people.admin.id, 60_000)}`;
}

/** Every page that there is: its name, who sees it, how it is come by. */
const PAGES: [name: string, who: Who, open: Open][] = [
  ["landing", "visitor", "/"],
  ["landing-closed", "visitor", `${strict.url}/`],
  ["sign-in", "visitor", "/auth/login"],
  [
    "sign-in-refused",
    "visitor",
    then("/auth/login", async (page) => {
      await fill(page, { username: "ada.lovelace", password: "not the password" });
      await press(page, "Sign in");
      await alert(page);
    }),
  ],
  ["sign-in-provider-away", "visitor", `${strict.url}/auth/login`],
  ["provider-away", "visitor", `${strict.url}/auth/sso`],
  ["provider-callback-over", "visitor", "/auth/sso/callback?state=unknown&code=unknown"],
  ["register", "visitor", "/auth/register"],
  [
    "register-refused",
    "visitor",
    then("/auth/register", async (page) => {
      await fill(page, { username: "ada.lovelace", password: "a fine password" });
      await press(page, "Create the account");
      await alert(page);
    }),
  ],
  ["register-invited", "visitor", `/auth/register?return_to=${new URL(gallery.invitation).pathname}`],
  ["register-closed", "visitor", `${strict.url}/auth/register`],
  ["reset", "visitor", async (page) => page.goto(at(await resetLink()))],
  [
    "reset-refused",
    "visitor",
    async (page) => {
      await page.goto(at(await resetLink()));
      await fill(page, { password: "password" });
      await press(page, "Save the password");
      await alert(page);
    },
  ],
  ["reset-over", "visitor", "/auth/reset-password/nothing"],
  ["authorization-sign-in", "visitor", authorizeUrl(service, studio)],
  [
    "authorization-refused",
    "visitor",
    authorizeUrl(service, studio, { redirect_uri: "https://evil.example/" }),
  ],
  ["authorization-over", "visitor", "/interaction/nothing"],
  ["link-unknown", "visitor", "/no-such-link"],
  ["link-over", "visitor", `/${gallery.archived.slug}`],
  ["not-found", "visitor", "/no/such/page"],
  ["docs", "visitor", "/docs"],

  ["account-choice", "owner", authorizeUrl(service, studio, { prompt: "select_account" })],
  [
    "account-choice-long",
    "member",
    authorizeUrl(service, flows, { redirect_uri: LOCAL_APP, prompt: "select_account" }),
  ],
  ["consent", "owner", authorizeUrl(service, studio, { scope: "links:write webhooks:read openid" })],
  ["consent-local", "member", authorizeUrl(service, flows, { redirect_uri: LOCAL_APP })],
  ["consent-impossible", "founder", authorizeUrl(service, studio)],

  ["welcome", "newcomer", "/dashboard"],
  [
    "organizations",
    "owner",
    async (page) => {
      await page.context().clearCookies({ name: "organization" });
      await page.goto(at("/dashboard"));
    },
  ],
  ["overview", "owner", `${own}`],
  ["overview-free", "founder", `${ownFresh}`],
  ["overview-member", "member", `${own}`],
  ["menus", "owner", then(`${own}`, (page) => page.locator("summary").first().click())],
  ["menu-account", "owner", then(`${own}`, (page) => page.locator("header summary").last().click())],
  ["overview-table", "owner", then(`${own}`, (page) => page.locator("main summary").first().click())],
  [
    "rename-refused",
    "owner",
    then(`${own}`, async (page) => {
      await fill(page, { name: " " });
      await press(page, "Rename");
      await alert(page);
    }),
  ],
  [
    "renamed",
    "owner",
    then(`${own}`, async (page) => {
      await press(page, "Rename");
      await page.locator("[role=status]").waitFor();
    }),
  ],
  ["organization-new", "owner", "/dashboard/organizations/new"],
  ["organization-delete", "owner", `${own}/delete`],
  ["members", "owner", `${own}/members`],
  ["members-alone", "founder", `${ownFresh}/members`],
  ["members-member", "member", `${own}/members`],
  ["invitation-made", "owner", then(`${own}/members`, (page) => press(page, "Make invitation link"))],
  [
    "invitation-shown",
    "owner",
    then(`${own}/members`, async (page) => {
      await press(page, "Make invitation link");
      await page.locator(".copyable").waitFor();
      await page.reload();
    }),
  ],
  [
    "reset-link-made",
    "owner",
    then(`${own}/members`, async (page) => {
      await page.getByText("Manage").first().click();
      await press(page, /^Password link/);
    }),
  ],
  ["members-menu", "owner", then(`${own}/members`, (page) => page.getByText("Manage").first().click())],
  ["invitation", "founder", gallery.invitation],
  ["invitation-over", "founder", "/dashboard/invitations/nothing"],
  ["plan", "owner", `${own}/plan`],
  ["plan-free", "founder", `${ownFresh}/plan`],
  ["plan-member", "member", `${own}/plan`],
  ["plan-down", "owner", `${own}/plan/free`],
  ["client-none", "founder", `${ownFresh}/client`],
  ["client", "owner", `${own}/client`],
  ["client-rotate", "owner", `${own}/client/rotate`],
  ["client-secret", "owner", then(`${ownEmpty}/client/rotate`, newSecret)],
  [
    "client-secret-shown",
    "owner",
    then(`${ownEmpty}/client/rotate`, async (page) => {
      await newSecret(page);
      await page.reload();
    }),
  ],
  [
    "client-uris-refused",
    "owner",
    then(`${own}/client`, async (page) => {
      await fill(page, { redirect_uris: "http://app.example.com/callback\nhttps://app.example.com/#top" });
      await press(page, "Save redirect URIs");
      await alert(page);
    }),
  ],
  ["quick-start", "owner", `${own}/client/quick-start`],
  ["links", "owner", `${own}/links`],
  ["links-none", "founder", `${ownFresh}/links`],
  ["links-nothing", "owner", `${own}/links?search=nothing`],
  ["links-refused", "owner", `${own}/links?search=${"a".repeat(300)}`],
  ["link", "owner", `${own}/links/${gallery.popular.id}`],
  ["link-archived", "owner", `${own}/links/${gallery.archived.id}`],
  ["link-new", "owner", `${own}/links/new`],
  [
    "link-new-refused",
    "owner",
    then(`${own}/links/new`, async (page) => {
      await fill(page, { url: "https://example.com/", slug: "spring" });
      await press(page, "Create link");
      await alert(page);
    }),
  ],
  ["link-edit", "owner", `${own}/links/${gallery.popular.id}/edit`],
  ["link-delete", "owner", `${own}/links/${gallery.popular.id}/delete`],
  ["link-clicks", "owner", `${own}/links/${gallery.popular.id}/analytics`],
  ["clicks", "owner", `${own}/analytics`],
  ["clicks-none", "founder", `${ownFresh}/analytics`],
  ["clicks-refused", "owner", `${own}/analytics?from=2026-01-02&to=2026-01-01`],
  ["webhooks", "owner", `${own}/webhooks`],
  ["webhooks-none", "owner", `${ownEmpty}/webhooks`],
  ["webhooks-free", "founder", `${ownFresh}/webhooks`],
  ["webhook-new", "owner", `${own}/webhooks/new`],
  [
    "webhook-new-refused",
    "owner",
    then(`${own}/webhooks/new`, async (page) => {
      await fill(page, { url: "https://10.0.0.1/hook" });
      await page.locator("[value='link.created']").uncheck();
      await press(page, "Create webhook");
      await alert(page);
    }),
  ],
  [
    "webhook-made",
    "owner",
    then(`${own}/webhooks/new`, async (page) => {
      await fill(page, { url: receiver.url("/another") });
      await press(page, "Create webhook");
      await page.locator(".copyable").waitFor();
    }),
  ],
  [
    "webhook",
    "owner",
    then(`${own}/webhooks/${gallery.webhook.id}`, (page) => page.locator(".delivery").first().click()),
  ],
  [
    "webhook-failing",
    "owner",
    then(`${own}/webhooks/${gallery.failing.id}`, (page) => page.locator(".delivery").first().click()),
  ],
  [
    "webhook-secret-shown",
    "owner",
    then(`${own}/webhooks/${gallery.webhook.id}/rotate-secret`, async (page) => {
      await newSecret(page);
      await page.reload();
    }),
  ],
  ["webhook-gone", "owner", `${own}/webhooks/${gallery.gone.id}`],
  ["webhook-edit", "owner", `${own}/webhooks/${gallery.webhook.id}/edit`],
  ["webhook-rotate", "owner", `${own}/webhooks/${gallery.webhook.id}/rotate-secret`],
  ["webhook-delete", "owner", `${own}/webhooks/${gallery.webhook.id}/delete`],
  ["apps", "owner", `${own}/apps`],
  ["apps-none", "founder", `${ownFresh}/apps`],
  ["apps-member", "member", `${own}/apps`],
  ["audit", "owner", `${own}/audit`],
  ["audit-nothing", "owner", `${own}/audit?type=organization.deleted`],
  ["account", "owner", "/dashboard/account"],
  [
    "account-refused",
    "owner",
    then("/dashboard/account", async (page) => {
      await fill(page, { current_password: "not the password", new_password: "another fine password" });
      await press(page, "Change the password");
      await alert(page);
    }),
  ],
  ["account-link", "owner", then("/dashboard/account", (page) => press(page, "Link Example ID"))],
  ["sign-in-again", "owner", "/auth/login?again=1"],
  ["role-refused", "member", `${own}/audit`],
  ["dashboard-not-found", "owner", "/dashboard/nothing"],
];

const visitors = new Map<Who, Promise<Page>>();
const visited = new Set<string>();
const linked = new Map<string, { page: Page; from: string; href: string }>();

/** The browser of somebody, who is signed in there. */
function pageOf(browser: Browser, who: Who): Promise<Page> {
  const known = visitors.get(who) ?? open(browser, who);
  visitors.set(who, known);
  return known;
}

async function open(browser: Browser, who: Who): Promise<Page> {
  // What moves has to have arrived before it is looked at.
  const { page } = await openPage(browser, { reducedMotion: "reduce" });
  if (who === "visitor") return page;
  const { username, password } = people[who];
  await page.goto(at("/auth/login"));
  await fill(page, { username, password });
  await press(page, "Sign in");
  await page.waitForURL(/\/dashboard/);
  return page;
}

/** An address as a kind of page: ids differ. */
function kindOf(address: string): string {
  return new URL(address).pathname.replaceAll(/(?<=\/)[a-z]{3}_\w{20,}/g, "…");
}

async function isReadable(t: ExecutionContext, page: Page, name: string) {
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    const fullPage = (await page.evaluate<number>("document.documentElement.scrollHeight")) < PICTURE_MAX;
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme });
      const rules = colorScheme === "dark" ? COLOUR_RULES : undefined;
      t.deepEqual(await violationsOf(page, rules), [], `${width} px, ${colorScheme}`);
      if (SCREENSHOTS)
        await page.screenshot({ path: `${SCREENSHOTS}/${name}.${width}.${colorScheme}.png`, fullPage });
    }
    const overflow = await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
    t.true(overflow <= 0, `${overflow} px too wide at ${width} px`);
  }
}

inChromium("the check sees what is wrong", async (t, browser) => {
  const { page } = await openPage(browser);
  await page.setContent(`<p style="color: #aaa">Pale</p><input>`);
  t.regex((await violationsOf(page)).join(), /color-contrast.*label/s);
  t.regex((await violationsOf(page, COLOUR_RULES)).join(), /^color-contrast/);
  await page.context().close();
});

for (const [name, who, address] of PAGES) {
  inChromium(`the page “${name}” reads well at every width, in light and dark`, async (t, browser) => {
    const page = await pageOf(browser, who);
    await (typeof address === "string" ? page.goto(new URL(address, service.url).href) : address(page));
    t.is(await page.locator("h1").count(), 1);
    await isReadable(t, page, name);
    visited.add(kindOf(page.url()));
    const links = await page.evaluate<string[]>("[...document.links].map(({ href }) => href)");
    for (const href of links)
      if (href.startsWith(service.url)) linked.set(kindOf(href), { page, from: name, href });
  });
}

inChromium("no page that a link leads to is missing above", async (t) => {
  const missing = [];
  for (const [kind, { page, from, href }] of linked) {
    if (visited.has(kind)) continue;
    const answer = await page.request.get(href, { maxRedirects: 0, headers: { accept: "text/html" } });
    const isPage = answer.headers()["content-type"]?.startsWith("text/html");
    if (isPage && answer.status() < 300) missing.push(`${kind}, from ${from}`);
  }
  t.deepEqual(missing, []);
});
