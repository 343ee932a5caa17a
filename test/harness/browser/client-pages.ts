import { pathsOf } from "./gallery-paths.ts";
import { fill, openThen, press, showSecret, waitForError } from "./page-actions.ts";
import type { Gallery, GalleryPage } from "./visitor-pages.ts";

/** Returns the pages of plans and of the OAuth client. */
export function clientPages(gallery: Gallery): GalleryPage[] {
  const { own, ownEmpty, ownKeyed, ownFresh } = pathsOf(gallery);
  return [
    ["plan", "owner", `${own}/plan`],
    ["plan-free", "founder", `${ownFresh}/plan`],
    ["plan-member", "member", `${own}/plan`],
    ["plan-down", "owner", `${own}/plan/free`],
    ["client-none", "founder", `${ownFresh}/client`],
    ["client", "owner", `${own}/client`],
    ["client-rotate", "owner", `${own}/client/rotate`],
    ["client-secret", "owner", openThen(`${ownEmpty}/client/rotate`, showSecret)],
    [
      "client-secret-shown",
      "owner",
      openThen(`${ownEmpty}/client/rotate`, async (page) => {
        await showSecret(page);
        await page.reload();
      }),
    ],
    [
      "client-uris-rejected",
      "owner",
      openThen(`${own}/client/redirect-uris`, async (page) => {
        await page.locator("#redirect_uri").fill("http://app.example.com/callback");
        await press(page, "Add redirect URI");
        await waitForError(page);
      }),
    ],
    ["client-uris", "owner", `${own}/client/redirect-uris`],
    ["client-uris-none", "owner", `${ownEmpty}/client/redirect-uris`],
    ["client-keys", "owner", `${own}/client/keys`],
    ["client-keys-none", "owner", `${ownEmpty}/client/keys`],
    ["client-profile", "owner", `${own}/client/profile`],
    [
      "client-profile-rejected",
      "owner",
      openThen(`${own}/client/profile`, async (page) => {
        await fill(page, { client_uri: "http://app.example.com" });
        await press(page, "Save");
        await waitForError(page);
      }),
    ],
    ["client-security", "owner", `${own}/client/security`],
    ["client-endpoints", "owner", `${own}/client/endpoints`],
    ["client-key", "owner", `${own}/client/keys/new`],
    [
      "client-key-rejected",
      "owner",
      openThen(`${own}/client/keys/new`, async (page) => {
        await fill(page, { key: "-----BEGIN PUBLIC KEY-----" });
        await press(page, "Add key");
        await waitForError(page);
      }),
    ],
    [
      "client-key-remove",
      "owner",
      openThen(`${own}/client/keys`, (page) => page.getByRole("link", { name: /^Remove key/ }).click()),
    ],
    ["client-secrets-remove", "owner", `${own}/client/secrets/remove`],
    ["client-disable", "owner", `${own}/client/disable`],
    ["client-without-secret", "owner", `${ownKeyed}/client`],
    ["client-secret-create", "owner", `${ownKeyed}/client/rotate`],
    ["quick-start", "owner", `${own}/client/quick-start`],
    ["workload-identity", "owner", `${own}/workload-identity`],
    ["workload-identity-none", "owner", `${ownEmpty}/workload-identity`],
    ["workload-identity-free", "founder", `${ownFresh}/workload-identity`],
    ["trust-rule-new", "owner", `${own}/workload-identity/new`],
    ["trust-rule-new-gitlab", "owner", `${own}/workload-identity/new?platform=gitlab`],
    ["trust-rule-new-kubernetes", "owner", `${own}/workload-identity/new?platform=kubernetes`],
    [
      "trust-rule-new-rejected",
      "owner",
      openThen(`${own}/workload-identity/new?platform=other`, async (page) => {
        await fill(page, { name: "Deploy", issuer: "http://gitlab.example", subject: "*", claims: "ref" });
        await page.locator("[value='links:write']").uncheck();
        await press(page, "Add trust rule");
        await waitForError(page);
      }),
    ],
    ["connect", "owner", `${own}/connect`],
    ["connect-editor", "owner", `${own}/connect?host=vscode`],
    ["connect-unavailable", "owner", `${own}/connect?host=cursor`],
    ["connect-local", "member", `${own}/connect?host=claude`],
    ["connect-programs", "owner", `${own}/connect?host=scripts`],
    ["connect-scripts", "member", `${own}/connect?host=scripts`],
    ["connect-free", "founder", `${ownFresh}/connect`],
  ];
}
