import type { Page } from "playwright-core";
import { codeOf } from "../clients/second-factor.ts";
import { pathsOf } from "./gallery-paths.ts";
import { fill, openThen, press, waitForError } from "./page-actions.ts";
import type { Gallery, GalleryPage } from "./visitor-pages.ts";

/** Returns the pages of the account, and those of apps and the audit log. */
export function accountPages(gallery: Gallery): GalleryPage[] {
  const { own, ownFresh } = pathsOf(gallery);
  return [
    ["apps", "owner", `${own}/apps`],
    ["app-revoke", "owner", openThen(`${own}/apps`, openRevocation("Postcard Studio"))],
    ["app-revoke-webhooks", "owner", openThen(`${own}/apps`, openRevocation("delete webhooks"))],
    ["app-revoke-member", "member", openThen(`${own}/apps`, openRevocation("Flowline"))],
    ["apps-none", "founder", `${ownFresh}/apps`],
    ["apps-member", "member", `${own}/apps`],
    ["audit", "owner", `${own}/audit`],
    [
      "audit-group",
      "owner",
      openThen(`${own}/audit?type=link.created&actor=${gallery.organization.clientId}`, (page) =>
        page.locator("td summary").first().click(),
      ),
    ],
    ["audit-app", "owner", openThen(`${own}/apps`, openActivity("webhooks"))],
    ["audit-nothing", "owner", `${own}/audit?type=organization.deleted`],
    ["account", "owner", "/dashboard/account"],
    ["account-apps", "owner", "/dashboard/account/apps"],
    ["account-app-revoke", "owner", openThen("/dashboard/account/apps", openRevocation("Flowline"))],
    [
      "account-rejected",
      "owner",
      openThen("/dashboard/account", async (page) => {
        await fill(page, { current_password: "not the password", new_password: "another fine password" });
        await press(page, "Change password");
        await waitForError(page);
      }),
    ],
    ["passkey-new", "owner", "/dashboard/account/passkeys/new"],
    ["second-factor-setup", "owner", "/dashboard/account/second-factor"],
    [
      "totp-setup",
      "founder",
      openThen("/dashboard/account", async (page) => {
        await press(page, "Set up authenticator app");
        await page.locator(".qr").waitFor();
      }),
    ],
    [
      "totp-rejected",
      "founder",
      openThen("/dashboard/account/totp", async (page) => {
        await fill(page, { code: "000000" });
        await press(page, "Confirm code");
        await waitForError(page);
      }),
    ],
    [
      "recovery-codes",
      "founder",
      openThen("/dashboard/account/totp", async (page) => {
        const key = (await page.locator(".copyable code").textContent()) ?? "";
        await fill(page, { code: codeOf(key.replaceAll(" ", "")) });
        await press(page, "Confirm code");
        await page.locator(".codes").waitFor();
      }),
    ],
    ["account-protected", "founder", "/dashboard/account"],
    [
      "second-factor",
      "visitor",
      openThen("/auth/login", async (page) => {
        const { username, password } = gallery.users.founder;
        await fill(page, { username, password });
        await press(page, "Sign in");
        await page.locator("#totp").waitFor();
      }),
    ],
    [
      "second-factor-rejected",
      "visitor",
      openThen("/auth/second-factor?method=recovery_code", async (page) => {
        await fill(page, { recovery_code: "not a code" });
        await press(page, "Continue");
        await waitForError(page);
      }),
    ],
    ["account-link", "owner", openThen("/dashboard/account", (page) => press(page, "Link Example ID"))],
    ["sign-in-again", "owner", "/auth/login?again=1"],
    ["role-rejected", "member", `${own}/audit`],
    ["dashboard-not-found", "owner", "/dashboard/nothing"],
  ];
}

/** Opens what the first app whose row has the text did. */
function openActivity(text: string) {
  return async (page: Page) => {
    const row = page.locator("tr", { hasText: text }).first();
    await row.getByRole("link", { name: /^View activity/ }).click();
    await page.locator("h1", { hasText: "Audit log" }).waitFor();
  };
}

/** Opens the page that revokes the first app whose row has the text. */
function openRevocation(text: string) {
  return async (page: Page) => {
    await page
      .locator("tr", { hasText: text })
      .first()
      .getByRole("link", { name: /^Revoke access/ })
      .click();
    await page.locator("h1", { hasText: "Revoke access?" }).waitFor();
  };
}
