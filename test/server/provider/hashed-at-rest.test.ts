import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { ask, authorizeUrl, codeFor, createApp, newTokens, openConsent } from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import { startTestService } from "../harness/service.ts";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-rest-"));
const service = await startTestService({ DATABASE_URL: `sqlite:${folder}/test.sqlite` });
test.after.always(async () => {
  await service.close();
  rmSync(folder, { recursive: true, force: true });
});

const contents = () =>
  Buffer.concat(
    readdirSync(folder)
      .filter((name) => name.startsWith("test.sqlite"))
      .map((name) => readFileSync(path.join(folder, name))),
  );

test("sec 129: nothing that was given out can be read in the database", async (t) => {
  const { app, user } = await createApp(service);
  const person = new Person(service.url);
  const { accessToken, refreshToken, code } = await newTokens(service, app, user, { person });
  const pushed = await ask(service, "par", app, {
    client_id: app.clientId,
    response_type: "code",
    redirect_uri: "https://app.example.com/callback",
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    code_challenge_method: "S256",
  });
  const consent = await openConsent(person, user, authorizeUrl(service, app));
  // The number of an interaction stands in its address; only with its signature is it a key.
  const cookies = (await person.jar.getCookies(consent.url)).filter(({ key }) => key !== "interaction");
  const secrets: Record<string, string> = {
    "access token": accessToken,
    "own token": await service.token(app),
    "refresh token": refreshToken,
    "redeemed code": code,
    "open code": await codeFor(service, app, user),
    "client secret": app.clientSecret,
    password: user.password,
    "pushed request": String(pushed.body.request_uri).split(":").at(-1) ?? "",
    ...Object.fromEntries(cookies.map(({ key, value }) => [`cookie ${key}`, value])),
  };
  t.true(Object.keys(secrets).includes("cookie session"));
  t.true(Object.keys(secrets).includes("cookie interaction.sig"));
  const stored = contents();
  t.true(stored.includes(app.clientId));
  for (const [name, secret] of Object.entries(secrets)) {
    t.true(secret.length > 10, name);
    t.false(stored.includes(secret), name);
    t.false(stored.includes(secret.replace(/^lg[a-z]_/, "")), name);
  }
});
