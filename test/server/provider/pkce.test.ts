import test from "ava";
import {
  allow,
  authorizeUrl,
  codeFor,
  createApp,
  type Fields,
  opensApi,
  pkce,
  redeemCode,
  VERIFIER,
} from "../harness/oauth.ts";
import { Person } from "../harness/person.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const { app, user } = await createApp(service);
const { challenge } = await pkce();
test.after.always(() => service.close());

const REQUESTS: [number: number, what: string, changes: Fields][] = [
  [29, "no challenge", { code_challenge: undefined, code_challenge_method: undefined }],
  [29, "an empty challenge", { code_challenge: "" }],
  [29, "a method without a challenge", { code_challenge: undefined }],
  [30, "the method plain", { code_challenge_method: "plain" }],
  [30, "a challenge without a method", { code_challenge_method: undefined }],
  [30, "an unknown method", { code_challenge_method: "S512" }],
  [30, "a method in another case", { code_challenge_method: "s256" }],
  [30, "a challenge that is too short", { code_challenge: challenge.slice(1) }],
  [30, "a challenge that is too long", { code_challenge: "x".repeat(129) }],
  [30, "a challenge of other letters", { code_challenge: `${challenge.slice(1)}=` }],
];

for (const [number, what, changes] of REQUESTS) {
  test(`sec ${number}: a request with ${what} is invalid_request`, async (t) => {
    const page = await new Person(service.url).open(authorizeUrl(service, app, changes));
    const query = new URL(page.url).searchParams;
    t.is(query.get("error"), "invalid_request");
    t.is(query.get("iss"), service.url);
  });
}

test("sec 29: an app on this computer needs a challenge as well", async (t) => {
  const { app: native } = await createApp(service, ["http://127.0.0.1/cb"]);
  const changes = { redirect_uri: "http://127.0.0.1:5000/cb", code_challenge: undefined };
  const page = await new Person(service.url).open(authorizeUrl(service, native, changes));
  t.is(new URL(page.url).searchParams.get("error"), "invalid_request");
});

const VERIFIERS: Record<string, string | undefined> = {
  "no verifier": undefined,
  "an empty verifier": "",
  "another verifier": "x".repeat(43),
  "a verifier that is too short": VERIFIER.slice(1),
  "a verifier that is too long": VERIFIER.repeat(3),
  "a verifier of other letters": `${VERIFIER.slice(1)}!`,
  "a verifier with a NUL": `${VERIFIER}\u0000`,
  "a verifier with a space behind it": `${VERIFIER} `,
  "a verifier in another case": VERIFIER.toUpperCase(),
  "the challenge itself": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
};

for (const [what, verifier] of Object.entries(VERIFIERS)) {
  test(`sec 31, 33: ${what} gets no token and does not use the code up`, async (t) => {
    const code = await codeFor(service, app, user);
    const wrong = await redeemCode(service, app, code, { code_verifier: verifier });
    t.is(wrong.status, 400);
    t.regex(String(wrong.body.error), /^invalid_(grant|request)$/);
    t.false("access_token" in wrong.body);
    t.is((await redeemCode(service, app, code)).status, 200);
  });
}

test("sec 31: a verifier given twice gets no token", async (t) => {
  const code = await codeFor(service, app, user);
  const { status, body } = await redeemCode(service, app, code, {
    code_verifier: [VERIFIER, "x".repeat(43)],
  });
  t.is(status, 400);
  t.is(body.error, "invalid_request");
});

test("sec 33: a wrong verifier after the redemption ends no token", async (t) => {
  const code = await codeFor(service, app, user);
  const { body } = await redeemCode(service, app, code);
  t.is((await redeemCode(service, app, code, { code_verifier: "x".repeat(43) })).status, 400);
  t.true(await opensApi(service, body.access_token));
});

test("sec 31: the verifier of one authorization is no good for the code of another", async (t) => {
  const other = await pkce();
  const url = authorizeUrl(service, app, { code_challenge: other.challenge });
  const code = (await allow(service, user, url)).searchParams.get("code") ?? "";
  t.is((await redeemCode(service, app, code)).body.error, "invalid_grant");
  t.is((await redeemCode(service, app, code, { code_verifier: other.verifier })).status, 200);
});
