import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { connectMcp } from "../../harness/clients/mcp.ts";
import { allow, authorizeUrl, openConsent, read, VERIFIER } from "../../harness/clients/oauth.ts";
import {
  connectRegistered,
  type RegisteredClient,
  register,
  requestTokens,
} from "../../harness/clients/registration.ts";
import { createSelfRegisteringHost } from "../../harness/clients/self-registering.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { bearer, postForm, startTestService } from "../../harness/service.ts";

export const databases = "all";

const service = await startTestService({ DYNAMIC_REGISTRATION: "stateless" });
const organization = await service.createOrganization();
const user = await service.createUser([organization.id], undefined, "owner");
test.after.always(() => service.close());

const CALLBACK = "http://127.0.0.1/callback";
const registerExample = () => register(service, { client_name: "Example", redirect_uris: [CALLBACK] });

/** The body that each host registers with, without members that are the same. */
const HOSTS: Record<string, { redirect_uris: string[]; client_name: string; [member: string]: unknown }> = {
  Cursor: {
    client_name: "Cursor",
    redirect_uris: [
      "http://localhost:8787/callback",
      "https://www.cursor.com/agents/mcp/oauth/callback",
      "cursor://anysphere.cursor-mcp/oauth/callback",
    ],
  },
  "Gemini CLI": {
    client_name: "Gemini CLI MCP Client",
    redirect_uris: ["http://localhost:7777/oauth/callback"],
    scope: "",
  },
  "Copilot CLI": {
    client_name: "GitHub Copilot CLI",
    redirect_uris: ["http://127.0.0.1:56679/"],
    application_type: "native",
  },
};
const COMMON = {
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
  token_endpoint_auth_method: "none",
};

for (const [host, metadata] of Object.entries(HOSTS)) {
  test(`${host} registers, connects on the real pages, refreshes, and calls a tool`, async (t) => {
    const client = await register(service, { ...COMMON, ...metadata });
    for (const redirectUri of metadata.redirect_uris) {
      const tokens = await connectRegistered(service, { ...client, redirectUri }, user);
      t.is(tokens.status, 200, tokens.text);
      const refreshed = await requestTokens(service, client, {
        grant_type: "refresh_token",
        refresh_token: String(tokens.body.refresh_token),
        resource: service.urls.mcp,
      });
      t.is(refreshed.status, 200, refreshed.text);
      t.not(refreshed.body.refresh_token, tokens.body.refresh_token, "a public client's token is rotated");
      const mcp = await connectMcp(service.urls.mcp, String(refreshed.body.access_token));
      const { structuredContent } = await mcp.callTool({ name: "whoami", arguments: {} });
      t.like(structuredContent, { client_id: client.clientId, user_id: user.id });
      await mcp.close();
    }
  });
}

test("a public client can't introspect its own token", async (t) => {
  const redirectUri = "http://127.0.0.1:56679/";
  const client = await register(service, { ...COMMON, redirect_uris: [redirectUri] });
  const { body } = await connectRegistered(service, { ...client, redirectUri }, user);
  const token = String(body.access_token);
  const { status, body: refusal } = await read(
    postForm(`${service.url}/oauth/introspect`, { client_id: client.clientId, token }),
  );
  t.is(status, 401);
  t.like(refusal, {
    error: "invalid_client",
    error_description: "client authentication failed: public clients cannot introspect tokens",
    error_uri: `${service.url}/docs/errors/invalid_client`,
  });
});

test("the MCP SDK's client registers itself and connects", async (t) => {
  const host = createSelfRegisteringHost(service, user);
  const client = await host.connect();
  const clientId = String(host.state.client?.client_id);
  t.regex(clientId, /^lgd_/);
  const { structuredContent } = await client.callTool({ name: "whoami", arguments: {} });
  t.like(structuredContent, { client_id: clientId, user_id: user.id });
  await client.close();
});

test("a loopback redirect URI matches with any port, and nothing else does", async (t) => {
  const { clientId } = await registerExample();
  const statusOf = async (redirect_uri: string | undefined) =>
    (await fetch(authorizeUrl(service, { clientId }, { redirect_uri }), { redirect: "manual" })).status;
  t.is(await statusOf("http://127.0.0.1:50123/callback"), 303);
  for (const uri of [
    "http://localhost/callback",
    "http://127.0.0.1/callback/",
    "http://127.0.0.1/callback?x",
    "https://127.0.0.1/callback",
    "https://evil.example/callback",
  ]) {
    t.is(await statusOf(uri), 400, uri);
  }
});

test("the authorization request of a registered client needs PKCE", async (t) => {
  const { clientId } = await registerExample();
  const changes = { redirect_uri: CALLBACK, code_challenge: undefined, code_challenge_method: undefined };
  const { headers } = await fetch(authorizeUrl(service, { clientId }, changes), { redirect: "manual" });
  t.is(new URL(String(headers.get("location"))).searchParams.get("error"), "invalid_request");
});

test("a registered client can push a request with its redirect URI, and with no other", async (t) => {
  const { clientId } = await registerExample();
  const push = (redirect_uri: string) => {
    const [, query] = authorizeUrl(service, { clientId }, { redirect_uri }).split("?");
    return read(postForm(`${service.url}/oauth/par`, new URLSearchParams(query)));
  };
  t.is((await push(CALLBACK)).status, 201);
  const { status, body } = await push("https://evil.example/callback");
  t.is(status, 400);
  t.regex(String(body.error), /^invalid_(request|redirect_uri)$/);
});

const MISTAKES: [what: string, changes: Record<string, string | undefined>, error: string][] = [
  ["prompt=none", { prompt: "none" }, "login_required"],
  ["no PKCE", { code_challenge: undefined, code_challenge_method: undefined }, "invalid_request"],
  ["an unknown scope", { scope: "unknown" }, "invalid_scope"],
  ["an unknown resource", { resource: "https://other.example/" }, "invalid_target"],
];
for (const [what, changes, error] of MISTAKES) {
  test(`a request with ${what} is redirected to a known website, and not to any other`, async (t) => {
    const request = async (redirect_uri: string) => {
      const { clientId } = await register(service, { redirect_uris: [redirect_uri] });
      const url = authorizeUrl(service, { clientId }, { redirect_uri, ...changes });
      return fetch(url, { redirect: "manual" });
    };
    for (const known of ["https://vscode.dev/redirect", CALLBACK]) {
      const location = new URL((await request(known)).headers.get("location") ?? "");
      t.is(location.origin + location.pathname, known);
      t.is(location.searchParams.get("error"), error);
    }
    for (const unknown of ["https://evil.example/callback", "com.evil.app:/callback"]) {
      const { status, headers } = await request(unknown);
      t.is(status, 400);
      t.is(headers.get("location"), null);
      t.regex(headers.get("content-type") ?? "", /^text\/html/);
    }
  });
}

test("a user who cancels returns to any website that was registered", async (t) => {
  const own = await service.createOrganization();
  await service.storage.organizationSettings.change(own.id, { allowedClients: "any" }, OPERATOR);
  const owner = await service.createUser([own.id], undefined, "owner");
  const redirect_uri = "https://agent.example.com/callback";
  const { clientId } = await register(service, { redirect_uris: [redirect_uri] });
  const browser = new TestBrowser(service.url);
  const page = await openConsent(browser, owner, authorizeUrl(service, { clientId }, { redirect_uri }));
  const { origin, pathname, searchParams } = new URL((await browser.press(page, "Cancel")).url);
  t.is(origin + pathname, redirect_uri);
  t.is(searchParams.get("error"), "access_denied");
});

type Attempt = [what: string, fields: Record<string, string>, error: string];
const REFUSED: Attempt[] = [
  ["client credentials", { grant_type: "client_credentials" }, "unauthorized_client"],
  ["a password", { grant_type: "password", username: "x", password: "x" }, "unsupported_grant_type"],
  [
    "an unknown code",
    { grant_type: "authorization_code", code: "x", redirect_uri: CALLBACK, code_verifier: "x".repeat(43) },
    "invalid_grant",
  ],
  [
    "a client secret",
    { grant_type: "refresh_token", refresh_token: "x", client_secret: "x" },
    "invalid_client",
  ],
];

for (const [what, fields, error] of REFUSED) {
  test(`a token request of a registered client with ${what} is refused with ${error}`, async (t) => {
    const { clientId } = await registerExample();
    const { status, body } = await requestTokens(service, { clientId }, fields);
    t.true(status === 400 || status === 401, String(status));
    t.is(body.error, error);
  });
}

test("a registered client can neither redeem, refresh, introspect nor revoke what another one was issued", async (t) => {
  const owner = await registerExample();
  const other = await register(service, { client_name: "Other", redirect_uris: [CALLBACK] });
  const { body } = await connectRegistered(service, owner, user);
  const access = String(body.access_token);
  const refreshed = await requestTokens(service, other, {
    grant_type: "refresh_token",
    refresh_token: String(body.refresh_token),
  });
  t.is(refreshed.body.error, "invalid_grant");
  const send = (endpoint: string, client: RegisteredClient, token: string) =>
    read(postForm(`${service.url}/oauth/${endpoint}`, { client_id: client.clientId, token }));
  t.is((await send("introspect", other, access)).body.error, "invalid_client");
  t.is((await send("revoke", other, access)).status, 200);
  const isAccepted = async () =>
    (await fetch(service.urls.mcp, { method: "POST", headers: bearer(access) })).status !== 401;
  t.true(await isAccepted());
  t.is((await send("revoke", owner, access)).status, 200);
  t.false(await isAccepted());
});

test("the code of a registered client is redeemed with its own client ID only", async (t) => {
  const owner = await registerExample();
  const { clientId } = await register(service, { client_name: "Other", redirect_uris: [CALLBACK] });
  const callback = await allow(service, user, authorizeUrl(service, owner, { redirect_uri: CALLBACK }));
  const redeem = (client_id: string | undefined) =>
    requestTokens(service, owner, {
      grant_type: "authorization_code",
      code: String(callback.searchParams.get("code")),
      redirect_uri: CALLBACK,
      code_verifier: VERIFIER,
      client_id,
    });
  t.is((await redeem(clientId)).body.error, "invalid_grant");
  t.is((await redeem(undefined)).body.error, "invalid_request");
  t.is((await redeem(owner.clientId)).status, 200);
});

test("the consent page quotes the name, says that it is not verified, and warns of local apps", async (t) => {
  const name = "<b>Claude</b> & friends";
  const { clientId } = await register(service, { client_name: name, redirect_uris: [CALLBACK] });
  const url = authorizeUrl(service, { clientId }, { redirect_uri: CALLBACK });
  const page = await openConsent(new TestBrowser(service.url), user, url);
  const text = page.html.text.replace(/\s+/g, " ");
  t.true(text.includes(`“${name}” is requesting access`), text);
  t.regex(text, /Unverified app: anyone can use this name\./);
  t.regex(text, /You’ll be redirected to 127\.0\.0\.1\./);
  t.regex(text, /runs on your computer/);
});

/** What the consent page shows of a client for its first redirect URI, for an organization that allows any client. */
async function openConsentFor(metadata: { redirect_uris: string[]; client_name?: string }) {
  const { clientId, redirectUri } = await register(service, metadata);
  const own = await service.createOrganization();
  await service.storage.organizationSettings.change(own.id, { allowedClients: "any" }, OPERATOR);
  const owner = await service.createUser([own.id], undefined, "owner");
  const url = authorizeUrl(service, { clientId }, { redirect_uri: redirectUri });
  const page = await openConsent(new TestBrowser(service.url), owner, url);
  return page.html.text.replace(/\s+/g, " ");
}

for (const redirectUri of [
  "com.evil.app://claude.ai/callback",
  "com.evil.app://localhost/",
  "com.evil.app://accounts.example:443/",
]) {
  test(`the consent page shows only the scheme of ${redirectUri}`, async (t) => {
    const text = await openConsentFor({ client_name: "Claude", redirect_uris: [redirectUri] });
    t.regex(text, /You’ll be redirected to com\.evil\.app\. /);
    t.false(text.includes(new URL(redirectUri).host), text);
  });
}

test("a registered client without a name is called by all of its redirect targets", async (t) => {
  const text = await openConsentFor({
    redirect_uris: [
      "https://claude.ai/a",
      "https://evil.example/",
      "com.evil.app://claude.com/",
      "https://claude.ai/b",
    ],
  });
  t.true(text.includes("claude.ai, evil.example, com.evil.app is requesting access"), text);
});

test("a registered client without a name is called by its redirect host", async (t) => {
  const redirect_uri = "https://agent.example.com/callback";
  const { clientId } = await register(service, { redirect_uris: [redirect_uri] });
  const url = authorizeUrl(service, { clientId }, { redirect_uri });
  const page = await openConsent(new TestBrowser(service.url), user, url);
  t.regex(page.html.textContent, /agent\.example\.com/);
  t.false(page.html.textContent.includes(clientId));
});

test("a user can see and revoke the access of a registered client", async (t) => {
  const client = await register(service, { client_name: "Revocable", redirect_uris: [CALLBACK] });
  const { body } = await connectRegistered(service, client, user);
  const browser = new TestBrowser(service.url);
  await browser.signIn(await browser.open(`${service.url}/dashboard`), user);
  const page = await browser.open(`${service.url}/dashboard/organizations/${organization.id}/apps`);
  const row = page.html.querySelectorAll("tr").find((one) => one.text.includes("Revocable"));
  t.truthy(row, page.text);
  const revoke = row?.querySelector("a[href$='/delete']")?.attributes.href ?? "";
  const confirmation = await browser.open(new URL(revoke, service.url).href);
  await browser.submit(confirmation, {}, confirmation.html.querySelector("main form"));
  const { status } = await fetch(service.urls.mcp, {
    method: "POST",
    headers: bearer(String(body.access_token)),
  });
  t.is(status, 401);
});

test("a registered client is asked for consent each time, also with an https redirect URI", async (t) => {
  const redirectUri = "https://agent.example.com/callback";
  const client = await register(service, { client_name: "Agent", redirect_uris: [redirectUri] });
  const own = await service.createOrganization();
  await service.storage.organizationSettings.change(own.id, { allowedClients: "any" }, OPERATOR);
  const owner = await service.createUser([own.id], undefined, "owner");
  const browser = new TestBrowser(service.url);
  await connectRegistered(service, client, owner, { browser });
  const page = await browser.open(authorizeUrl(service, client, { redirect_uri: redirectUri }));
  t.regex(page.text, /Allow access\?/);
});
