import test from "ava";
import type { HTMLElement } from "node-html-parser";
import { ROLES, type Role } from "../../../resources/access/scopes.ts";
import { openConsent, sendForm } from "../../harness/clients/authorization.ts";
import { authorizeUrl, createApp } from "../../harness/clients/authorization-request.ts";
import { authorizeUrlOf, type DocumentClient } from "../../harness/clients/document-client.ts";
import { register } from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { follow } from "../../harness/clients/visits.ts";
import { startPublisher } from "../../harness/publisher.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";

const publisher = await startPublisher(["evil.example"]);
const service = await startTestService(
  { ...publisher.settings, CIMD: "any", DYNAMIC_REGISTRATION: "stateless" },
  publisher.connections,
);
const organization = await service.createOrganization();
await service.storage.organizationSettings.change(organization.id, { allowedClients: "any" }, OPERATOR);
const member = await service.createUser([organization.id]);

const { app, own, user } = await createApp(service);

/** Returns the text of the consent page, and of the sign-in page before it. */
async function read(client: DocumentClient) {
  const browser = new TestBrowser(service.url);
  const url = authorizeUrlOf(service, client);
  const signIn = await browser.open(url);
  const consent = await openConsent(browser, member, url);
  const [signInText = "", text = ""] = [signIn, consent].map(({ html }) =>
    (html.querySelector("main")?.structuredText ?? "").replaceAll(/\s+/g, " "),
  );
  return { signIn: signInText, text };
}

test("a known client is shown with its name, its publisher and as verified", async (t) => {
  const { signIn, text } = await read({
    clientId: "https://chatgpt.com/oauth/client.json",
    redirectUri: "https://chatgpt.com/connector_platform_oauth_redirect",
  });
  t.regex(signIn, /ChatGPT wants to access your account\./);
  t.regex(text, /Allow ChatGPT to /);
  t.regex(text, /published by chatgpt\.com\. Verified: this app is on linkgate’s list of known apps\./);
  t.regex(text, /You’ll be redirected to chatgpt\.com\./);
  t.notRegex(text, /Not verified|runs on your computer/);
});

test("a known client on the user's computer comes with a warning", async (t) => {
  const { text } = await read({
    clientId: "https://claude.ai/oauth/claude-code-client-metadata",
    redirectUri: "http://127.0.0.1:40123/callback",
  });
  t.regex(text, /Allow Claude Code to /);
  t.regex(text, /published by claude\.ai\. This app is on linkgate’s list of known apps, but other programs/);
  t.notRegex(text, /Verified/);
  t.regex(text, /You’ll be redirected to 127\.0\.0\.1:40123\./);
  t.regex(text, /This app runs on your computer\. Continue only if you just started it\./);
});

for (const [client_name, redirectUri] of [
  ["ChatGPT", "https://evil.example/callback"],
  ["Claude Code", "http://localhost:40123/callback"],
  ["<script>alert(1)</script>", "com.evil.app:/callback"],
] as const)
  test(`another client that calls itself ${client_name} is shown by its host, as not verified`, async (t) => {
    const clientId = `https://evil.example/${encodeURIComponent(client_name)}`;
    publisher.publish(clientId, {
      body: { client_id: clientId, client_name, redirect_uris: [redirectUri.replace(":40123", "")] },
    });
    const { signIn, text } = await read({ clientId, redirectUri });
    t.regex(signIn, /evil\.example, an app that isn’t verified, wants to access your account\./);
    t.regex(text, /Allow evil\.example to /);
    t.regex(text, /Identity published by evil\.example\. Not verified: this app isn’t on linkgate’s list/);
    t.false(signIn.includes(client_name));
    t.false(text.includes(client_name));
    t.is(/runs on your computer/.test(text), redirectUri.includes("localhost"));
    t.regex(text, /You’ll be redirected to (evil\.example|localhost:40123|com\.evil\.app)/);
  });

test("a registered client is shown with the name that it chose, as not verified", async (t) => {
  const client = await register(service, {
    client_name: "ChatGPT",
    redirect_uris: ["https://evil.example/callback"],
  });
  const { signIn, text } = await read(client);
  t.regex(signIn, /“ChatGPT”, an app that isn’t verified, wants to access your account\./);
  t.notRegex(signIn, /An app by/);
  t.regex(text, /Allow “ChatGPT” to /);
  t.regex(text, /Unverified app: anyone can use this name\./);
  t.regex(text, /You’ll be redirected to evil\.example\./);
  t.notRegex(text, /Identity published/);
});

test("the consent page names the app and the organization, which are isolated from the text, then the redirect host and what the app gets", async (t) => {
  const scope = "openid links:write webhooks:read";
  const browser = new TestBrowser(service.url);
  const { text, html } = await openConsent(browser, user, authorizeUrl(service, app, { scope }));
  const terms = ["Create, edit and delete links", "View webhooks", "View your user ID", "90 days"];
  for (const part of [app.name, user.username, own.name, "app.example.com", ...terms])
    t.true(text.includes(part), part);
  t.false(text.includes("Create, edit and delete webhooks"));
  t.is(html.querySelector("h1")?.text, `Allow ${app.name} to manage ${own.name}’s links?`);
  t.regex(html.querySelector("h1 + p")?.text ?? "", /^You’ll be redirected to /);
  const reading = authorizeUrl(service, app, { scope: "links:read" });
  const reader = await openConsent(new TestBrowser(service.url), user, reading);
  t.is(reader.html.querySelector("h1")?.text, `Allow ${app.name} to see ${own.name}’s links?`);
  const isolated = (element?: HTMLElement) => element?.querySelectorAll("bdi").map(({ text }) => text);
  t.deepEqual(isolated(html), [app.name, own.name, user.username]);
});

test("organization names are escaped", async (t) => {
  const name = "<img src=x onerror=alert(1)>";
  const evil = await service.createOrganization(name);
  await service.storage.clients.setRedirectUris(evil.id, ["https://app.example.com/callback"], OPERATOR);
  const ids = [await service.createOrganization(name), await service.createOrganization(name)].map(
    ({ id }) => id,
  );
  for (const victim of [await service.createUser(ids.slice(1)), await service.createUser(ids)]) {
    const browser = new TestBrowser(service.url);
    const signIn = await browser.open(authorizeUrl(service, evil));
    const consent = await browser.signIn(signIn, victim);
    const choice = await browser.open(authorizeUrl(service, evil, { prompt: "select_account" }));
    for (const page of [signIn, consent, choice]) {
      t.is(page.html.querySelector("img[src=x]"), null);
      t.true(page.html.querySelector("main")?.textContent.includes(name) ?? false);
    }
  }
});

test("a login hint is escaped", async (t) => {
  const hint = `"><img src=x onerror=alert(1)>`;
  const url = authorizeUrl(service, app, { login_hint: hint });
  const page = await new TestBrowser(service.url).open(url);
  t.is(page.html.querySelector("img[src=x]"), null);
  t.is(page.html.querySelector("#username")?.getAttribute("value"), hint);
});

/** Opens the consent page of an app that the organization doesn't accept, by default one that none does. */
async function openExcluded(role: Role, redirect_uri = "https://press.example.com/callback") {
  const { id } = await service.createOrganization("Press");
  const visitor = await service.createUser([id], undefined, role);
  const allowedClients = redirect_uri.startsWith("https:") ? "known" : "none";
  await service.storage.organizationSettings.change(id, { allowedClients }, OPERATOR);
  const client = await register(service, { client_name: "Chat", redirect_uris: [redirect_uri] });
  const browser = new TestBrowser(service.url);
  const url = authorizeUrl(service, client, { redirect_uri });
  return { id, visitor, browser, page: await openConsent(browser, visitor, url) };
}

for (const role of ["owner", "admin", "member"] as const)
  test(`an ${role} whose organization doesn't accept the app can ${role === "member" ? "send a link to an owner or admin" : "accept it in the settings, and continue"}`, async (t) => {
    const { id, browser, page } = await openExcluded(role);
    t.is(page.html.querySelector("h1")?.text, "You can’t allow access");
    const main = page.html.querySelector("main")?.structuredText.replaceAll(/\s+/g, " ") ?? "";
    const link = `${service.url}/dashboard/organizations/${id}/settings#apps`;
    t.is(/Press doesn’t allow this app\. Ask an owner or admin/.test(main), role === "member");
    t.is(main.includes(link), role === "member");
    t.is(page.text.includes("Accept any app"), role !== "member");
    if (role === "member") return;

    const settings = await follow(browser, page, "settings");
    const form = settings.html.querySelector("#apps form");
    const options = form?.querySelectorAll("[name=allowed_clients] option");
    const any = options?.find(({ text }) => text === "Any app")?.attributes.value ?? "";
    t.true(page.text.includes("choose “Any app”"));
    const saved = await browser.submit(settings, { allowed_clients: any }, form);
    t.true(saved.text.includes("Settings saved."), saved.url);
    const again = await follow(browser, page, "check again");
    t.regex(again.html.querySelector("h1")?.text ?? "", /^Allow /);
    t.truthy(new URL((await browser.press(again, "Allow")).url).searchParams.get("code"));
  });

const ACCEPT = "Accept any app in Press";
const acceptedBy = async (id: string) =>
  (await service.storage.organizationSettings.find(id))?.allowedClients;

for (const role of ["owner", "admin"] as const)
  test(`an ${role} accepts the app with one button of the page that refused it, which the audit log has`, async (t) => {
    const { id, visitor, browser, page } = await openExcluded(role);
    const again = await browser.press(page, ACCEPT);
    t.is(again.url, page.url);
    t.regex(again.html.querySelector("h1")?.text ?? "", /^Allow /);
    t.is(await acceptedBy(id), "any");
    const types = ["organization.allowed_clients_changed" as const];
    const [entry] = await service.storage.audit.list(id, { types }, 10);
    t.is(entry?.actor, visitor.id);
    t.truthy(new URL((await browser.press(again, "Allow")).url).searchParams.get("code"));
  });

type Sent = Record<string, string>;
const ACCEPTANCES: Record<string, (opened: Awaited<ReturnType<typeof openExcluded>>) => Promise<Sent>> = {
  "without its CSRF token": async ({ id }) => ({ accept_for: id, csrf: "" }),
  "for an organization of others": async () => ({
    accept_for: (await service.createOrganization("Others")).id,
  }),
  async "after the role was lost"({ id, visitor }) {
    const change = { role: "member", manageableRoles: ROLES, actor: OPERATOR } as const;
    await service.storage.members.changeRole({ organizationId: id, userId: visitor.id, ...change });
    return { accept_for: id };
  },
};
for (const [how, prepare] of Object.entries(ACCEPTANCES))
  test(`an app isn't accepted ${how}`, async (t) => {
    const opened = await openExcluded("admin");
    const fields: Sent = { decision: "accept", ...(await prepare(opened)) };
    const { status } = await sendForm(opened.browser, opened.page, fields);
    t.true(status === 400 || status === 422, String(status));
    t.is(await acceptedBy(opened.id), "known");
    t.is(await acceptedBy(String(fields.accept_for)), "known");
  });

test("what has to be accepted is no more than the app needs", async (t) => {
  const { id, browser, page } = await openExcluded("owner", "http://127.0.0.1/callback");
  t.true(page.text.includes("choose “Known AI clients”"));
  await browser.press(page, "Accept known AI clients in Press");
  t.is(await acceptedBy(id), "known");
});
