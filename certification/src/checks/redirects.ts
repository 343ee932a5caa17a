import type { Check } from "../check.ts";
import type { Conversation, Fields, Reply } from "../conversation.ts";
import { expect } from "../expect.ts";

const EXACT = "RFC 9700 §2.1, RFC 6749 §3.1.2.3";
const NO_REDIRECT = "RFC 6749 §4.1.2.1";

/** Redirect URIs that are not the registered one, though they resemble it. */
const UNREGISTERED: [id: string, what: string, change: (uri: string) => string][] = [
  ["prefix", "with more characters at its end", (uri) => `${uri}x`],
  ["path", "with a longer path", (uri) => `${uri}/more`],
  ["traversal", "with a dot segment", (uri) => `${uri}/../other`],
  ["slash", "with another slash at its end", (uri) => `${uri}/`],
  ["query", "with a query", (uri) => `${uri}?added=1`],
  ["fragment", "with a fragment", (uri) => `${uri}#added`],
  ["case", "in another case", (uri) => uri.replace(/\/[^/]+$/, (last) => last.toUpperCase())],
  [
    "encoded",
    "with a percent-encoded letter",
    (uri) => uri.replace(/.$/, (char) => `%${char.charCodeAt(0).toString(16)}`),
  ],
  ["userinfo", "with a user name", (uri) => uri.replace("://", "://user@")],
  [
    "userinfo-host",
    "as the user name of another host",
    (uri) => uri.replace(/^(\w+):\/\/[^/]+/, (start) => `${start}@evil.example`),
  ],
  ["host", "with another host", (uri) => uri.replace(/:\/\/[^/]+/, "://evil.example")],
  ["subdomain", "with its host as a subdomain", (uri) => uri.replace(/:\/\/([^/:]+)/, "://$1.evil.example")],
  ["scheme", "with another scheme", (uri) => uri.replace(/^\w+/, "javascript")],
  ["backslash", "with a backslash", (uri) => uri.replace(/:\/\/([^/]+)/, "://evil.example\\@$1")],
];

/** What a reply says about a request, without the parts that differ each time. */
function outcomeOf({ status, headers }: Reply, base: string): string {
  const location = headers.get("location");
  if (!location) return String(status);
  const { origin, pathname } = new URL(location, base);
  return `${status} ${origin}${pathname.replaceAll(/[\w-]{16,}/g, "*")}`;
}

/** Throws Violation if the browser is redirected to the redirect URI, or the request is accepted like a valid one. */
async function isRefused(conversation: Conversation, changes: Fields): Promise<void> {
  const base = conversation.endpoint("authorization");
  const { fields } = conversation.authorizationRequest(changes);
  const [valid, reply] = [await conversation.open(), await conversation.open(changes)];
  const location = reply.headers.get("location");
  const to = location ? new URL(location, base) : undefined;
  const target = [fields.redirect_uri].flat().at(-1) ?? "";
  const isSent = to && URL.parse(target)?.host === to.host && to.host !== new URL(base).host;
  expect(!isSent, "the browser is redirected there");
  expect(
    outcomeOf(reply, base) !== outcomeOf(valid, base),
    "the request is accepted like one with the registered redirect URI",
  );
}

export const redirectChecks: Check[] = [
  ...UNREGISTERED.map(([id, what, change]) => ({
    id: `redirect-${id}`,
    title: `The registered redirect URI ${what} is refused`,
    clause: EXACT,
    async run(conversation: Conversation) {
      const { fields } = conversation.authorizationRequest();
      const redirect_uri = change(String(fields.redirect_uri));
      await isRefused(conversation, { redirect_uri });
    },
  })),
  {
    id: "redirect-repeated",
    title: "Two redirect URIs are refused",
    clause: "RFC 6749 §3.1",
    async run(conversation) {
      const { fields } = conversation.authorizationRequest();
      await isRefused(conversation, { redirect_uri: [String(fields.redirect_uri), "https://evil.example/"] });
    },
  },
  {
    id: "redirect-unknown-client",
    title: "The request of an unknown client is not redirected",
    clause: NO_REDIRECT,
    async run(conversation) {
      await isRefused(conversation, { client_id: "unknown-client", redirect_uri: "https://evil.example/" });
    },
  },
  {
    id: "redirect-no-client",
    title: "A request without a client is not redirected",
    clause: NO_REDIRECT,
    async run(conversation) {
      await isRefused(conversation, { client_id: undefined, redirect_uri: "https://evil.example/" });
    },
  },
  {
    id: "redirect-invalid",
    title: "An invalid request is not redirected to an unregistered URI",
    clause: `${NO_REDIRECT}, RFC 9700 §4.11.2`,
    async run(conversation) {
      await isRefused(conversation, { redirect_uri: "https://evil.example/", response_type: "unknown" });
    },
  },
];
