import type { Page } from "playwright-core";
import { authorizeUrl } from "../clients/authorization-request.ts";
import { authorizeUrlOf } from "../clients/document-client.ts";
import { codeOf } from "../clients/second-factor.ts";
import { DAY_MS } from "../clock.ts";
import type { TestService } from "../service.ts";
import type { Receiver } from "../webhooks.ts";
import { CLAUDE, CLAUDE_CODE, type Gallery, LOCAL_APP } from "./gallery.ts";
import { fill, openThen, press, submit, waitForError } from "./page-actions.ts";

type Who = keyof Gallery["users"] | "visitor";
type Open = string | ((page: Page) => Promise<unknown>);
/** Pages by their names and who sees them: the URL, or how to open it. */
type Pages = Record<`${string}, ${Who}`, Open>;

/** A page: its name, who sees it, and its URL or how to open it. */
export type GalleryPage = [name: string, who: Who, open: Open];

/**
 * Returns the pages of visitors, of the authorization endpoint and of the dashboard.
 * @param strict a service without self-service, whose identity provider is unavailable
 */
export function galleryPages(
  service: TestService,
  strict: TestService,
  gallery: Gallery,
  receiver: Receiver,
): GalleryPage[] {
  const pages: Pages = {
    ...plainPages(gallery),
    ...signInPages(service, strict, gallery),
    ...authorizationPages(service, gallery),
    ...organizationPages(gallery),
    ...clientForms(gallery),
    ...linkPages(gallery),
    ...domainPages(gallery),
    ...webhookPages(gallery, receiver),
    ...accountPages(gallery),
  };
  return Object.entries(pages).map(([key, open]) => [...(key.split(", ") as [string, Who]), open]);
}

function plainPages({ paths, popular, domain, newDomain, webhook }: Gallery): Pages {
  const { own, ownEmpty, ownKeyed, ownSuspended, ownFresh } = paths;
  const rows: [name: string, who: Who, base: string, below: string][] = [
    ["dashboard", "owner", "/dashboard", "account notices organizations/new nothing"],
    ["account", "owner", "/dashboard/account", "apps passkeys/new second-factor"],
    [
      "owner",
      "owner",
      own,
      `settings delete members plan plan/free apps audit audit?type=organization.deleted
      links links/new links/import links?search=nothing domains domains/new webhooks webhooks/new
      analytics analytics?referrer=news.example&device=desktop analytics?from=2026-01-02&to=2026-01-01
      client client/rotate client/redirect-uris client/keys client/keys/new client/profile client/security
      client/endpoints client/quick-start client/secrets/remove client/disable
      workload-identity workload-identity/new workload-identity/new?platform=gitlab
      workload-identity/new?platform=kubernetes
      connect connect?host=vscode connect?host=cursor connect?host=scripts
      apps/approve?client_id=${encodeURIComponent(CLAUDE.clientId)}`,
    ],
    [
      "link",
      "owner",
      `${own}/links/${popular.id}`,
      "edit delete qr qr?color=ffee00 analytics analytics?browser=",
    ],
    ["domain", "owner", `${own}/domains/${domain.id}`, "delete"],
    ["domain-new", "owner", `${own}/domains/${newDomain.id}`, "delete"],
    ["webhook", "owner", `${own}/webhooks/${webhook.id}`, "edit rotate-secret delete"],
    ["empty", "owner", ownEmpty, "domains webhooks client/redirect-uris client/keys workload-identity"],
    ["keyed", "owner", ownKeyed, "client client/rotate"],
    ["suspended", "owner", ownSuspended, "links domains webhooks client apps members plan connect settings"],
    [
      "free",
      "founder",
      ownFresh,
      "members members/me/delete links analytics domains webhooks plan client workload-identity connect apps",
    ],
    ["admin", "admin", own, "settings members/me/delete"],
    [
      "member",
      "member",
      own,
      "settings members members/me/delete plan apps audit connect?host=claude connect?host=scripts",
    ],
  ];
  const named = rows.flatMap(([name, who, base, below]) =>
    below.split(/\s+/).map((path) => [`${name}-${path.replaceAll(/\W+/g, "-")}, ${who}`, `${base}/${path}`]),
  );
  return Object.fromEntries(named);
}

function signInPages(service: TestService, strict: TestService, gallery: Gallery): Pages {
  const { admin, owner } = gallery.users;
  const notAda = { username: owner.username, password: "a fine password" };
  const resetLink = async () =>
    `/auth/reset-password/${await service.storage.accounts.createResetToken(admin.id, 60_000)}`;
  return {
    "landing, visitor": "/",
    "landing-closed, visitor": `${strict.url}/`,
    "sign-in, visitor": "/auth/login",
    "sign-in-rejected, visitor": submit("/auth/login", "Sign in", notAda),
    "sign-in-provider-unavailable, visitor": `${strict.url}/auth/login`,
    "provider-unavailable, visitor": `${strict.url}/auth/sso`,
    "provider-callback-expired, visitor": "/auth/sso/callback?state=unknown&code=unknown",
    "register, visitor": "/auth/register",
    "register-rejected, visitor": submit("/auth/register", "Create account", notAda),
    "register-invited, visitor": `/auth/register?return_to=${new URL(gallery.invitation).pathname}`,
    "register-closed, visitor": `${strict.url}/auth/register`,
    "reset, visitor": async (page) => page.goto(await resetLink()),
    "reset-rejected, visitor": async (page) =>
      submit(await resetLink(), "Save password", { password: "password" })(page),
    "reset-expired, visitor": "/auth/reset-password/nothing",
  };
}

function authorizationPages(service: TestService, { studio, flows, archived, popular }: Gallery): Pages {
  const local = { redirect_uri: LOCAL_APP };
  return {
    "authorization-sign-in, visitor": authorizeUrl(service, studio),
    "authorization-rejected, visitor": authorizeUrl(service, studio, { redirect_uri: "https://evil.test/" }),
    "authorization-continue, visitor": authorizeUrl(service, studio, { scope: "everything" }),
    "authorization-expired, visitor": "/interaction/nothing",
    "wrong-host, visitor": `${service.url.replace("localhost", "127.0.0.1")}/dashboard`,
    "link-preview, visitor": `/${popular.slug}+`,
    "link-unknown, visitor": "/no-such-link",
    "link-expired, visitor": `/${archived.slug}`,
    "not-found, visitor": "/no/such/page",
    "docs, visitor": "/docs",

    "account-choice, owner": authorizeUrl(service, studio, { prompt: "select_account" }),
    "account-choice-long, member": authorizeUrl(service, flows, { ...local, prompt: "select_account" }),
    "consent, owner": authorizeUrl(service, studio, { scope: "links:write webhooks:read openid" }),
    "consent-role, member": authorizeUrl(service, studio, { scope: "links:write webhooks:write" }),
    "consent-role-none, member": authorizeUrl(service, studio, { scope: "webhooks:write" }),
    "consent-local, member": authorizeUrl(service, flows, local),
    "consent-known, owner": authorizeUrlOf(service, CLAUDE),
    "consent-known-local, member": authorizeUrlOf(service, CLAUDE_CODE),
    "consent-impossible, founder": authorizeUrl(service, studio),
  };
}

const dateBefore = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);

function organizationPages(gallery: Gallery): Pages {
  const { own, ownFresh, ownSuspended } = gallery.paths;
  return {
    "welcome, newcomer": "/dashboard",
    "organizations, owner": async (page) => {
      await page.context().clearCookies({ name: "organization" });
      await page.goto("/dashboard");
    },
    "overview, owner": `${own}`,
    "overview-free, founder": `${ownFresh}`,
    "overview-member, member": `${own}`,
    "menus, owner": openThen(`${own}`, (page) => page.locator("summary").first().click()),
    "menu-account, owner": openThen(`${own}`, (page) => page.locator("header summary").last().click()),
    "overview-table, owner": openThen(`${own}`, (page) => page.locator("main summary").first().click()),
    "renamed, owner": submit(`${own}/settings`, "Rename organization", {}, "[role=status]"),
    "suspended, owner": ownSuspended,
    "suspended-refusal, owner": submit(`${ownSuspended}/settings`, "Rename organization", {}, "h1"),
    "member-remove, owner": `${own}/members/${gallery.users.member.id}/delete`,
    "member-remove-webhooks, owner": `${own}/members/${gallery.users.admin.id}/delete`,
    "member-role, owner": `${own}/members/${gallery.users.member.id}/role?role=owner`,
    "member-sign-out, owner": `${own}/members/${gallery.users.member.id}/sign-out`,
    "invitation-created, owner": submit(`${own}/members`, "Create invitation link", {}, ".copyable"),
    "reset-link-created, owner": openThen(`${own}/members`, async (page) => {
      await openMenu(page);
      await press(page, /^Create reset link/);
    }),
    "members-menu, owner": openThen(`${own}/members`, openMenu),
    "invitation, founder": gallery.invitation,
    "invitation-own, owner": gallery.invitation,
    "invitation-invalid, founder": "/dashboard/invitations/nothing",
  };
}

const openMenu = (page: Page) => page.locator("summary", { hasText: "Manage" }).first().click();

function linkPages(gallery: Gallery): Pages {
  const { own } = gallery.paths;
  return {
    "links-rejected, owner": `${own}/links?search=${"a".repeat(300)}`,
    "link, owner": `${own}/links/${gallery.popular.id}`,
    "link-archived, owner": `${own}/links/${gallery.archived.id}`,
    "link-disabled, owner": `${own}/links/${gallery.disabled.id}`,
    "link-protected, owner": `${own}/links/${gallery.locked.id}`,
    "link-protected-edit, owner": `${own}/links/${gallery.locked.id}/edit`,
    "link-password, visitor": `/${gallery.locked.slug}?utm_source=mail`,
    "link-password-wrong, visitor": submit(`/${gallery.locked.slug}`, "Continue", { password: "wrong" }),
    "link-password-preview, visitor": `/${gallery.locked.slug}+`,
    "link-new-rejected, owner": submit(`${own}/links/new`, "Create link", {
      url: "https://a.example/",
      slug: "spring",
    }),
    "links-change, owner": openThen(`${own}/links`, async (page) => {
      await page.locator("[name=ids]").first().check({ force: true });
      await press(page, "Change…");
      await press(page, "Change links");
      await waitForError(page);
    }),
    "link-import-rejected, owner": openThen(`${own}/links/import`, (page) => preview(page, "name\nvalue\n")),
    "link-import-preview, owner": openThen(`${own}/links/import`, (page) => preview(page, IMPORTED)),
    "clicks-today, owner": `${own}/analytics?from=${dateBefore(0)}`,
    "clicks-months, owner": `${own}/analytics?from=${dateBefore(89)}`,
  };
}

const IMPORTED = `url,slug,title,tags,created_at,clicks
https://example.com/catalog?from=mail,import-catalog,Catalog,mail,2024-03-01,1284
https://example.com/jobs,spring,,,2023-11-20,37
https://example.com/contact,import contact,,,,
`;

async function preview(page: Page, csv: string): Promise<void> {
  const file = { name: "links.csv", mimeType: "text/csv", buffer: Buffer.from(csv) };
  await page.locator("[name=file]").setInputFiles(file);
  await press(page, "Preview");
  await page.locator("main table, [role=alert]").first().waitFor();
}

function domainPages({ paths: { own }, domain, lostDomain, newDomain }: Gallery): Pages {
  const pathOf = ({ id }: { id: string }) => `${own}/domains/${id}`;
  return {
    "domain, owner": pathOf(domain),
    "domain-lost, owner": pathOf(lostDomain),
    "domain-new, owner": pathOf(newDomain),
    "domain-unproven, owner": submit(pathOf(newDomain), "Verify domain", {}),
    "domain-rejected, owner": submit(pathOf(domain), "Save settings", { not_found_url: "ftp://a.example/" }),
    "links-of-domain, owner": `${own}/links?domain=${domain.host}`,
    "link-of-domain, owner": openThen(`${own}/links/new`, (page) =>
      page.getByLabel("Domain").selectOption(lostDomain.host),
    ),
  };
}

function webhookPages(gallery: Gallery, receiver: Receiver): Pages {
  const { own } = gallery.paths;
  const webhook = `${own}/webhooks/${gallery.webhook.id}`;
  const another = { url: receiver.url("/another") };
  const openFirst = (page: Page) => page.click("tbody a");
  return {
    "webhook-new-rejected, owner": openThen(`${own}/webhooks/new`, async (page) => {
      await fill(page, { url: "https://10.0.0.1/hook" });
      await page.locator("[value='link.created']").uncheck();
      await press(page, "Create webhook");
      await waitForError(page);
    }),
    "webhook-created, owner": submit(`${own}/webhooks/new`, "Create webhook", another, ".copyable"),
    "webhook, owner": webhook,
    "webhook-failing, owner": `${own}/webhooks/${gallery.failing.id}`,
    "webhook-filtered, owner": `${webhook}?status=failed&event_type=link.created`,
    "delivery, owner": openThen(webhook, openFirst),
    "delivery-failing, owner": openThen(`${own}/webhooks/${gallery.failing.id}`, openFirst),
    "delivery-disabled, owner": `${own}/webhooks/${gallery.gone.id}/deliveries/${gallery.lost.id}`,
    "deliveries-none-failed, owner": `${webhook}/deliveries/resend-failed`,
    "deliveries-resend-failed, owner": `${own}/webhooks/${gallery.gone.id}/deliveries/resend-failed`,
    "webhook-secret, owner": submit(webhook, "Show secret", {}, ".copyable"),
    "webhook-secret-shown, owner": openThen(`${webhook}/rotate-secret`, async (page) => {
      await press(page, "Rotate secret");
      await page.locator(".copyable").first().waitFor();
      await page.reload();
    }),
    "webhook-unverified, owner": `${own}/webhooks/${gallery.unverified.id}`,
    "webhook-gone, owner": `${own}/webhooks/${gallery.gone.id}`,
  };
}

function clientForms(gallery: Gallery): Pages {
  const { own, ownEmpty } = gallery.paths;
  return {
    "client-secret, owner": submit(`${ownEmpty}/client/rotate`, /secret$/, {}, ".copyable"),
    "client-uris-rejected, owner": submit(`${own}/client/redirect-uris`, "Add redirect URI", {
      redirect_uri: "http://a.example/",
    }),
    "client-key-remove, owner": openThen(`${own}/client/keys`, (page) =>
      page.getByRole("link", { name: /^Remove key/ }).click(),
    ),
    "trust-rule-new-rejected, owner": openThen(
      `${own}/workload-identity/new?platform=other`,
      async (page) => {
        await fill(page, { name: "Deploy", issuer: "http://gitlab.example", subject: "*", claims: "ref" });
        await page.locator("[value='links:write']").uncheck();
        await press(page, "Add trust rule");
        await waitForError(page);
      },
    ),
  };
}

function accountPages(gallery: Gallery): Pages {
  const { own } = gallery.paths;
  const { username, password } = gallery.users.founder;
  return {
    "app-revoke, owner": openRevocation(`${own}/apps`, "Postcard Studio"),
    "app-revoke-webhooks, owner": openRevocation(`${own}/apps`, "delete webhooks"),
    "app-revoke-member, member": openRevocation(`${own}/apps`, "Flowline"),
    "audit-group, owner": openThen(
      `${own}/audit?type=link.created&actor=${gallery.organization.clientId}`,
      async (page) => {
        await page.locator("td [href*='part=']").first().click();
        await page.waitForURL(/part=/);
      },
    ),
    "audit-app, owner": openFromRow(`${own}/apps`, "webhooks", /^View activity/, "Audit log"),
    "account-app-revoke, owner": openRevocation("/dashboard/account/apps", "Flowline"),
    "account-rejected, owner": submit("/dashboard/account", "Change password", {
      current_password: "not the password",
      new_password: "another fine password",
    }),
    "totp-setup, founder": submit("/dashboard/account", "Set up authenticator app", {}, ".qr"),
    "recovery-codes, founder": openThen("/dashboard/account/totp", async (page) => {
      const key = (await page.locator(".copyable code").textContent()) ?? "";
      await fill(page, { code: codeOf(key.replaceAll(" ", "")) });
      await press(page, "Confirm code");
      await page.locator(".codes").waitFor();
    }),
    "account-protected, founder": "/dashboard/account",
    "second-factor, visitor": submit("/auth/login", "Sign in", { username, password }, "#totp"),
    "second-factor-rejected, visitor": submit("/auth/second-factor?method=recovery_code", "Continue", {
      recovery_code: "not a code",
    }),
    "account-link, owner": openThen("/dashboard/account", (page) => press(page, "Link Example ID")),
    "sign-in-again, owner": "/auth/login?again=1",
  };
}

function openFromRow(path: string, text: string, link: RegExp, heading: string) {
  return openThen(path, async (page) => {
    const row = page.locator("tr", { hasText: text }).first();
    await row.getByRole("link", { name: link }).click();
    await page.locator("h1", { hasText: heading }).waitFor();
  });
}

function openRevocation(path: string, text: string) {
  return openFromRow(path, text, /^Revoke access/, "Revoke access?");
}
