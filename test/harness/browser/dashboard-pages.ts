import type { Page } from "playwright-core";
import type { Receiver } from "../receiver.ts";
import { accountPages } from "./account-pages.ts";
import { clientPages } from "./client-pages.ts";
import { pathsOf } from "./gallery-paths.ts";
import { fill, openThen, press, waitForError } from "./page-actions.ts";
import type { Gallery, GalleryPage } from "./visitor-pages.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const dateBefore = (days: number) => new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);

/** Returns the pages of the dashboard. */
export function dashboardPages(gallery: Gallery, receiver: Receiver): GalleryPage[] {
  return [
    ...organizationPages(gallery),
    ...clientPages(gallery),
    ...linkPages(gallery),
    ...webhookPages(gallery, receiver),
    ...accountPages(gallery),
  ];
}

function organizationPages(gallery: Gallery): GalleryPage[] {
  const { own, ownFresh, ownSuspended } = pathsOf(gallery);
  return [
    ["welcome", "newcomer", "/dashboard"],
    [
      "organizations",
      "owner",
      async (page) => {
        await page.context().clearCookies({ name: "organization" });
        await page.goto("/dashboard");
      },
    ],
    ["overview", "owner", `${own}`],
    ["overview-free", "founder", `${ownFresh}`],
    ["overview-member", "member", `${own}`],
    ["menus", "owner", openThen(`${own}`, (page) => page.locator("summary").first().click())],
    ["menu-account", "owner", openThen(`${own}`, (page) => page.locator("header summary").last().click())],
    ["overview-table", "owner", openThen(`${own}`, (page) => page.locator("main summary").first().click())],
    ["settings", "owner", `${own}/settings`],
    ["settings-admin", "admin", `${own}/settings`],
    ["settings-member", "member", `${own}/settings`],
    [
      "rename-rejected",
      "owner",
      openThen(`${own}/settings`, async (page) => {
        await fill(page, { name: " " });
        await press(page, "Rename organization");
        await waitForError(page);
      }),
    ],
    [
      "renamed",
      "owner",
      openThen(`${own}/settings`, async (page) => {
        await press(page, "Rename organization");
        await page.locator("[role=status]").waitFor();
      }),
    ],
    ["notices", "owner", "/dashboard/notices"],
    ["suspended", "owner", ownSuspended],
    [
      "suspended-refusal",
      "owner",
      openThen(`${ownSuspended}/settings`, (page) => press(page, "Rename organization")),
    ],
    ["organization-new", "owner", "/dashboard/organizations/new"],
    ["organization-delete", "owner", `${own}/delete`],
    ["members", "owner", `${own}/members`],
    ["member-remove", "owner", `${own}/members/${gallery.users.member.id}/delete`],
    ["member-remove-webhooks", "owner", `${own}/members/${gallery.users.admin.id}/delete`],
    ["leave", "member", `${own}/members/me/delete`],
    ["leave-webhooks", "admin", `${own}/members/me/delete`],
    ["leave-only-owner", "founder", `${ownFresh}/members/me/delete`],
    ["member-sign-out", "owner", `${own}/members/${gallery.users.member.id}/sign-out`],
    ["members-single", "founder", `${ownFresh}/members`],
    ["members-member", "member", `${own}/members`],
    [
      "invitation-created",
      "owner",
      openThen(`${own}/members`, (page) => press(page, "Create invitation link")),
    ],
    [
      "invitation-shown",
      "owner",
      openThen(`${own}/members`, async (page) => {
        await press(page, "Create invitation link");
        await page.locator(".copyable").waitFor();
        await page.reload();
      }),
    ],
    [
      "reset-link-created",
      "owner",
      openThen(`${own}/members`, async (page) => {
        await page.locator("summary", { hasText: "Manage" }).first().click();
        await press(page, /^Create reset link/);
      }),
    ],
    [
      "members-menu",
      "owner",
      openThen(`${own}/members`, (page) => page.locator("summary", { hasText: "Manage" }).first().click()),
    ],
    ["invitation", "founder", gallery.invitation],
    ["invitation-invalid", "founder", "/dashboard/invitations/nothing"],
  ];
}

function linkPages(gallery: Gallery): GalleryPage[] {
  const { own, ownFresh } = pathsOf(gallery);
  return [
    ["links", "owner", `${own}/links`],
    ["links-none", "founder", `${ownFresh}/links`],
    ["links-nothing", "owner", `${own}/links?search=nothing`],
    ["links-rejected", "owner", `${own}/links?search=${"a".repeat(300)}`],
    ["link", "owner", `${own}/links/${gallery.popular.id}`],
    ["link-archived", "owner", `${own}/links/${gallery.archived.id}`],
    ["link-disabled", "owner", `${own}/links/${gallery.disabled.id}`],
    ["link-new", "owner", `${own}/links/new`],
    [
      "link-new-rejected",
      "owner",
      openThen(`${own}/links/new`, async (page) => {
        await fill(page, { url: "https://example.com/", slug: "spring" });
        await press(page, "Create link");
        await waitForError(page);
      }),
    ],
    ["link-import", "owner", `${own}/links/import`],
    [
      "link-import-rejected",
      "owner",
      openThen(`${own}/links/import`, (page) => preview(page, "name\nvalue\n")),
    ],
    ["link-import-preview", "owner", openThen(`${own}/links/import`, (page) => preview(page, IMPORTED))],
    ["link-edit", "owner", `${own}/links/${gallery.popular.id}/edit`],
    ["link-delete", "owner", `${own}/links/${gallery.popular.id}/delete`],
    ["link-clicks", "owner", `${own}/links/${gallery.popular.id}/analytics`],
    ["clicks", "owner", `${own}/analytics`],
    ["clicks-today", "owner", `${own}/analytics?from=${dateBefore(0)}`],
    ["clicks-months", "owner", `${own}/analytics?from=${dateBefore(89)}`],
    ["clicks-filtered", "owner", `${own}/analytics?by=referrer&value=news.example`],
    ["link-clicks-filtered", "owner", `${own}/links/${gallery.popular.id}/analytics?by=browser`],
    ["clicks-none", "founder", `${ownFresh}/analytics`],
    ["clicks-rejected", "owner", `${own}/analytics?from=2026-01-02&to=2026-01-01`],
  ];
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

function webhookPages(gallery: Gallery, receiver: Receiver): GalleryPage[] {
  const { own, ownEmpty, ownFresh } = pathsOf(gallery);
  return [
    ["webhooks", "owner", `${own}/webhooks`],
    ["webhooks-none", "owner", `${ownEmpty}/webhooks`],
    ["webhooks-free", "founder", `${ownFresh}/webhooks`],
    ["webhook-new", "owner", `${own}/webhooks/new`],
    [
      "webhook-new-rejected",
      "owner",
      openThen(`${own}/webhooks/new`, async (page) => {
        await fill(page, { url: "https://10.0.0.1/hook" });
        await page.locator("[value='link.created']").uncheck();
        await press(page, "Create webhook");
        await waitForError(page);
      }),
    ],
    [
      "webhook-created",
      "owner",
      openThen(`${own}/webhooks/new`, async (page) => {
        await fill(page, { url: receiver.url("/another") });
        await press(page, "Create webhook");
        await page.locator(".copyable").waitFor();
      }),
    ],
    ["webhook", "owner", `${own}/webhooks/${gallery.webhook.id}`],
    ["webhook-failing", "owner", `${own}/webhooks/${gallery.failing.id}`],
    [
      "webhook-filtered",
      "owner",
      `${own}/webhooks/${gallery.webhook.id}?status=failed&event_type=link.created`,
    ],
    ["delivery", "owner", openThen(`${own}/webhooks/${gallery.webhook.id}`, (page) => page.click("tbody a"))],
    [
      "delivery-failing",
      "owner",
      openThen(`${own}/webhooks/${gallery.failing.id}`, (page) => page.click("tbody a")),
    ],
    ["delivery-disabled", "owner", `${own}/webhooks/${gallery.gone.id}/deliveries/${gallery.lost.id}`],
    ["deliveries-resend-failed", "owner", `${own}/webhooks/${gallery.gone.id}/deliveries/resend-failed`],
    ["deliveries-none-failed", "owner", `${own}/webhooks/${gallery.webhook.id}/deliveries/resend-failed`],
    [
      "webhook-secret",
      "owner",
      openThen(`${own}/webhooks/${gallery.webhook.id}`, async (page) => {
        await press(page, "Show secret");
        await page.locator(".copyable").first().waitFor();
      }),
    ],
    [
      "webhook-secret-shown",
      "owner",
      openThen(`${own}/webhooks/${gallery.webhook.id}/rotate-secret`, async (page) => {
        await press(page, "Rotate secret");
        await page.locator(".copyable").first().waitFor();
        await page.reload();
      }),
    ],
    ["webhook-unverified", "owner", `${own}/webhooks/${gallery.unverified.id}`],
    ["webhook-gone", "owner", `${own}/webhooks/${gallery.gone.id}`],
    ["webhook-edit", "owner", `${own}/webhooks/${gallery.webhook.id}/edit`],
    ["webhook-rotate", "owner", `${own}/webhooks/${gallery.webhook.id}/rotate-secret`],
    ["webhook-delete", "owner", `${own}/webhooks/${gallery.webhook.id}/delete`],
  ];
}
