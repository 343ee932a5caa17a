import type { Page } from "playwright-core";
import { authorizeUrlOf } from "../clients/document-client.ts";
import { authorizeUrl } from "../clients/oauth.ts";
import type { TestService } from "../service.ts";
import { CLAUDE, CLAUDE_CODE, type createGallery, LOCAL_APP } from "./gallery.ts";
import { fill, openThen, press, waitForError } from "./page-actions.ts";

export type Gallery = Awaited<ReturnType<typeof createGallery>>;
/** A page: its name, who sees it, and its URL or how to open it. */
export type GalleryPage = [
  name: string,
  who: keyof Gallery["users"] | "visitor",
  open: string | ((page: Page) => Promise<unknown>),
];

/**
 * Returns the pages of visitors and of the authorization endpoint.
 * @param strict a service without self-service, whose identity provider is unavailable
 */
export function visitorPages(service: TestService, strict: TestService, gallery: Gallery): GalleryPage[] {
  return [...signInPages(service, strict, gallery), ...authorizationPages(service, gallery)];
}

function signInPages(service: TestService, strict: TestService, gallery: Gallery): GalleryPage[] {
  const { users } = gallery;
  const resetLink = async () =>
    `/auth/reset-password/${await service.storage.accounts.createResetToken(users.admin.id, 60_000)}`;
  return [
    ["landing", "visitor", "/"],
    ["landing-closed", "visitor", `${strict.url}/`],
    ["sign-in", "visitor", "/auth/login"],
    [
      "sign-in-rejected",
      "visitor",
      openThen("/auth/login", async (page) => {
        await fill(page, { username: "ada.lovelace", password: "not the password" });
        await press(page, "Sign in");
        await waitForError(page);
      }),
    ],
    ["sign-in-provider-unavailable", "visitor", `${strict.url}/auth/login`],
    ["provider-unavailable", "visitor", `${strict.url}/auth/sso`],
    ["provider-callback-expired", "visitor", "/auth/sso/callback?state=unknown&code=unknown"],
    ["register", "visitor", "/auth/register"],
    [
      "register-rejected",
      "visitor",
      openThen("/auth/register", async (page) => {
        await fill(page, { username: "ada.lovelace", password: "a fine password" });
        await press(page, "Create account");
        await waitForError(page);
      }),
    ],
    ["register-invited", "visitor", `/auth/register?return_to=${new URL(gallery.invitation).pathname}`],
    ["register-closed", "visitor", `${strict.url}/auth/register`],
    ["reset", "visitor", async (page) => page.goto(await resetLink())],
    [
      "reset-rejected",
      "visitor",
      async (page) => {
        await page.goto(await resetLink());
        await fill(page, { password: "password" });
        await press(page, "Save password");
        await waitForError(page);
      },
    ],
    ["reset-expired", "visitor", "/auth/reset-password/nothing"],
  ];
}

function authorizationPages(
  service: TestService,
  { studio, flows, archived, popular }: Gallery,
): GalleryPage[] {
  return [
    ["authorization-sign-in", "visitor", authorizeUrl(service, studio)],
    [
      "authorization-rejected",
      "visitor",
      authorizeUrl(service, studio, { redirect_uri: "https://evil.example/" }),
    ],
    ["authorization-expired", "visitor", "/interaction/nothing"],
    ["link-preview", "visitor", `/${popular.slug}+`],
    ["link-unknown", "visitor", "/no-such-link"],
    ["link-expired", "visitor", `/${archived.slug}`],
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
    ["consent-known", "owner", authorizeUrlOf(service, CLAUDE)],
    ["consent-known-local", "member", authorizeUrlOf(service, CLAUDE_CODE)],
    ["consent-impossible", "founder", authorizeUrl(service, studio)],
  ];
}
