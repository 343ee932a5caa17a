import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import {
  authorizeUrl,
  codeFor,
  createApp,
  openConsent,
  postAsClient,
  runCodeFlow,
} from "../../harness/clients/oauth.ts";
import { TestBrowser } from "../../harness/clients/test-browser.ts";
import { startTestService } from "../../harness/service.ts";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-rest-"));
const service = await startTestService({ DATABASE_URL: `sqlite:${folder}/test.sqlite` });
test.after.always(async () => {
  await service.close();
  rmSync(folder, { recursive: true, force: true });
});

const readDatabase = () =>
  Buffer.concat(
    readdirSync(folder)
      .filter((name) => name.startsWith("test.sqlite"))
      .map((name) => readFileSync(path.join(folder, name))),
  );

test("no issued token, code, secret, password or cookie is stored in plain text", async (t) => {
  const { app, user } = await createApp(service);
  const browser = new TestBrowser(service.url);
  const { accessToken, refreshToken, code } = await runCodeFlow(service, app, user, { browser });
  const pushed = await postAsClient(service, "par", app, {
    client_id: app.clientId,
    response_type: "code",
    redirect_uri: "https://app.example.com/callback",
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    code_challenge_method: "S256",
  });
  const consent = await openConsent(browser, user, authorizeUrl(service, app));
  // An interaction's id is in its URL; only the signed cookie gives access to it.
  const cookies = (await browser.jar.getCookies(consent.url)).filter(({ key }) => key !== "interaction");
  const secrets: Record<string, string> = {
    "access token": accessToken,
    "client credentials token": await service.token(app),
    "refresh token": refreshToken,
    "redeemed code": code,
    "unredeemed code": await codeFor(service, app, user),
    "client secret": app.clientSecret,
    password: user.password,
    "pushed request": String(pushed.body.request_uri).split(":").at(-1) ?? "",
    ...Object.fromEntries(cookies.map(({ key, value }) => [`cookie ${key}`, value])),
  };
  t.true(Object.keys(secrets).includes("cookie session"));
  t.true(Object.keys(secrets).includes("cookie interaction.sig"));
  const stored = readDatabase();
  t.true(stored.includes(app.clientId));
  for (const [name, secret] of Object.entries(secrets)) {
    t.true(secret.length > 10, name);
    t.false(stored.includes(secret), name);
    t.false(stored.includes(secret.replace(/^lg[a-z]_/, "")), name);
  }
});
