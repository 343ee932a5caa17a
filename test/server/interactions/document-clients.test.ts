import test from "ava";
import { OPERATOR } from "../../../resources/events/types.ts";
import { authorizeUrlOf, type DocumentClient } from "../../harness/clients/document-client.ts";
import { openConsent } from "../../harness/clients/oauth.ts";
import { register } from "../../harness/clients/registration.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { startPublisher } from "../../harness/publisher.ts";
import { startTestService } from "../../harness/service.ts";

const publisher = await startPublisher(["evil.example"]);
const service = await startTestService(
  { ...publisher.settings, CIMD: "any", DYNAMIC_REGISTRATION: "stateless" },
  publisher.connections,
);
const organization = await service.createOrganization();
await service.storage.appPolicies.set(organization.id, { allowedClients: "any" }, OPERATOR);
const user = await service.createUser([organization.id]);
test.after.always(async () => {
  publisher.close();
  await service.close();
});

/** Returns the text of the consent page, and of the sign-in page before it. */
async function read(client: DocumentClient) {
  const browser = new TestBrowser(service.url);
  const url = authorizeUrlOf(service, client);
  const signIn = await browser.open(url);
  const consent = await openConsent(browser, user, url);
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
  t.regex(text, /ChatGPT is requesting access/);
  t.regex(
    text,
    /Identity published by chatgpt\.com\. Verified: this app is on linkgate’s list of known apps\./,
  );
  t.regex(text, /You’ll be redirected to chatgpt\.com\./);
  t.notRegex(text, /Not verified|runs on your computer/);
});

test("a known client on the user's computer comes with a warning", async (t) => {
  const { text } = await read({
    clientId: "https://claude.ai/oauth/claude-code-client-metadata",
    redirectUri: "http://127.0.0.1:40123/callback",
  });
  t.regex(text, /Claude Code is requesting access/);
  t.regex(
    text,
    /Identity published by claude\.ai\. This app is on linkgate’s list of known apps, but other programs/,
  );
  t.notRegex(text, /Verified/);
  t.regex(text, /You’ll be redirected to 127\.0\.0\.1:40123\./);
  t.regex(text, /This app runs on your computer\. Continue only if you just started it\./);
});

for (const [client_name, redirectUri] of [
  ["ChatGPT", "https://evil.example/callback"],
  ["Claude Code", "http://localhost:40123/callback"],
  ["<script>alert(1)</script>", "com.evil.app:/callback"],
] as const) {
  test(`another client that calls itself ${client_name} is shown by its host, as not verified`, async (t) => {
    const clientId = `https://evil.example/${encodeURIComponent(client_name)}`;
    publisher.publish(clientId, {
      body: { client_id: clientId, client_name, redirect_uris: [redirectUri.replace(":40123", "")] },
    });
    const { signIn, text } = await read({ clientId, redirectUri });
    t.regex(signIn, /evil\.example, an app that isn’t verified, wants to access your account\./);
    t.regex(text, /evil\.example is requesting access/);
    t.regex(text, /Identity published by evil\.example\. Not verified: this app isn’t on linkgate’s list/);
    t.false(signIn.includes(client_name));
    t.false(text.includes(client_name));
    t.is(/runs on your computer/.test(text), redirectUri.includes("localhost"));
  });
}

test("a registered client is shown with the name that it chose, as not verified", async (t) => {
  const client = await register(service, {
    client_name: "ChatGPT",
    redirect_uris: ["https://evil.example/callback"],
  });
  const { signIn, text } = await read(client);
  t.regex(signIn, /“ChatGPT”, an app that isn’t verified, wants to access your account\./);
  t.notRegex(signIn, /An app by/);
  t.regex(text, /“ChatGPT” is requesting access/);
  t.regex(text, /Not verified: this app chose its name itself\./);
  t.regex(text, /You’ll be redirected to evil\.example\./);
  t.notRegex(text, /Identity published/);
});
