import test from "ava";
import { UNAVAILABLE } from "../../../../resources/http/problem.ts";
import { apiAt } from "../../../harness/clients/api.ts";
import { type Colleague, createColleague } from "../../../harness/clients/dashboard.ts";
import { TestBrowser } from "../../../harness/clients/test-browser.ts";
import { postForm, startTestService } from "../../../harness/service.ts";

const service = await startTestService();
test.after.always(() => service.close());

const CREDENTIAL_ID = "Y3JlZGVudGlhbA";
const client = (type: string, challenge: unknown = "x") =>
  Buffer.from(JSON.stringify({ type, challenge, origin: service.url })).toString("base64url");
const assertion = (changes: object = {}, response: object = {}) => ({
  id: CREDENTIAL_ID,
  rawId: CREDENTIAL_ID,
  type: "public-key",
  clientExtensionResults: {},
  ...changes,
  response: {
    clientDataJSON: client("webauthn.get"),
    authenticatorData: "AA",
    signature: "AA",
    ...response,
  },
});

const ASSERTIONS: Record<string, unknown> = {
  "no JSON": "{",
  null: null,
  "a number": 1,
  "an array": [],
  "no response": { id: CREDENTIAL_ID },
  "a response that is a text": { ...assertion(), response: "x" },
  "a number as the user handle": assertion({}, { userHandle: 1 }),
  "an object as the user handle": assertion({}, { userHandle: { length: 3 } }),
  "an object as the id": assertion({ id: { toString: 1 } }),
  "a list as the id": assertion({ id: [CREDENTIAL_ID], rawId: [CREDENTIAL_ID] }),
  "a NUL in the id": assertion({ id: "\0", rawId: "\0" }),
  "an object as the client data": assertion({}, { clientDataJSON: {} }),
  "a number as the challenge": assertion({}, { clientDataJSON: client("webauthn.get", 1) }),
  "numbers as data": assertion({}, { authenticatorData: 1, signature: 2 }),
};

let registrant: Colleague;
test.before(async () => {
  registrant = await createColleague(service, undefined);
  const owner = await service.createUser([]);
  await service.storage.secondFactors.passkeys.add(
    {
      credentialId: CREDENTIAL_ID,
      publicKey: "AA",
      counter: 0,
      transports: [],
      synced: false,
      name: "key",
    },
    { id: owner.id },
  );
});

for (const [what, value] of Object.entries(ASSERTIONS)) {
  test(`a passkey with ${what} is not accepted at sign-in`, async (t) => {
    const passkey = typeof value === "string" ? value : JSON.stringify(value);
    const headers = { accept: "text/html", origin: service.url };
    const reply = await postForm(`${service.url}/auth/passkey`, { passkey }, headers);
    t.is(reply.status, 400, await reply.text());
  });
}

const registration = (changes: object = {}, response: object = {}) => ({
  ...assertion(changes),
  response: { clientDataJSON: client("webauthn.create"), attestationObject: "oA", ...response },
});
const REGISTRATIONS: Record<string, unknown> = {
  "no JSON": "{",
  "no response": { id: CREDENTIAL_ID },
  "an object as the id": registration({ id: {}, rawId: {} }),
  "a text as transports": registration({}, { transports: "usb" }),
  "objects as transports": registration({}, { transports: [{}] }),
  "an object as the attestation": registration({}, { attestationObject: {} }),
  "a number as the challenge": registration({}, { clientDataJSON: client("webauthn.create", 1) }),
};

for (const [what, value] of Object.entries(REGISTRATIONS)) {
  test(`a passkey with ${what} is not registered`, async (t) => {
    const passkey = typeof value === "string" ? value : JSON.stringify(value);
    const json = { name: "another", passkey };
    const reply = await apiAt(service.url, registrant.token).send("POST", "/dashboard/account/passkeys", {
      json,
    });
    t.is(reply.status, 422, reply.text);
  });
}

test("an outage while a passkey is verified isn't reported as a wrong passkey", async (t) => {
  const browser = new TestBrowser(service.url);
  const page = await browser.open(`${service.url}/auth/login`);
  const options = page.html.querySelector("form[data-passkey]")?.attributes["data-options"] ?? "";
  const { challenge } = JSON.parse(options) as { challenge: string };
  const passkey = JSON.stringify(assertion({}, { clientDataJSON: client("webauthn.get", challenge) }));

  const { replays } = service.storage;
  const { useOnce } = replays;
  t.teardown(() => Object.assign(replays, { useOnce }));
  Object.assign(replays, {
    useOnce: () => Promise.reject(Object.assign(new Error("an outage"), { code: UNAVAILABLE })),
  });
  const headers = {
    accept: "text/html",
    origin: service.url,
    cookie: await browser.jar.getCookieString(service.url),
  };
  const reply = await postForm(`${service.url}/auth/passkey`, { passkey }, headers);
  t.is(reply.status, 503);
});
