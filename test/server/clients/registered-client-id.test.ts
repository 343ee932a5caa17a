import test from "ava";
import { createRegisteredClientIds } from "../../../server/clients/registered-client-id.ts";
import { authorizeUrl } from "../../harness/clients/oauth.ts";
import { postRegistration, register, requestTokens } from "../../harness/clients/registration.ts";
import { startTestService } from "../../harness/service.ts";

const settings = { DYNAMIC_REGISTRATION: "stateless" };
const service = await startTestService(settings);
const other = await startTestService(settings);
const REDIRECT_URI = "http://127.0.0.1/callback";
const CLIENT = { client_name: "Example", redirect_uris: [REDIRECT_URI] };
const MAC_LENGTH = 43;
const { clientId } = await register(service, CLIENT);
test.after.always(() => Promise.all([service.close(), other.close()]));

/** Returns what the authorization endpoint says about a client. */
async function authorize(id: string, at = service) {
  const url = authorizeUrl(at, { clientId: id }, { redirect_uri: REDIRECT_URI });
  const response = await fetch(url, { redirect: "manual" });
  return {
    status: response.status,
    location: response.headers.get("location") ?? "",
    text: await response.text(),
  };
}

/** Returns the id with another character at a position. */
function changeAt(position: number, character?: string): string {
  const current = clientId[position];
  const changed = character ?? (current === "A" ? "B" : "A");
  return clientId.slice(0, position) + changed + clientId.slice(position + 1);
}

test("the id of a registration is accepted", async (t) => {
  const { status, location } = await authorize(clientId);
  t.is(status, 303);
  t.regex(location, /\/interaction\//);
});

test("the ids of common apps have at most 120 characters", async (t) => {
  const apps = [
    [
      "Cursor",
      "cursor://anysphere.cursor-mcp/oauth/callback",
      "https://www.cursor.com/agents/mcp/oauth/callback",
      "http://localhost:8787/callback",
    ],
    ["Gemini CLI MCP Client", "http://localhost:7777/oauth/callback"],
    ["GitHub Copilot CLI", "http://127.0.0.1:56679/"],
    ["n8n", "https://automation.example.com/rest/oauth2-credential/callback"],
  ];
  for (const [client_name, ...redirect_uris] of apps) {
    const { body } = await postRegistration(service, { client_name, redirect_uris });
    const { length } = String(body.client_id);
    t.true(length <= 120, `${client_name}: ${length}`);
  }
});

test("equal registrations of one day have the same id, and different ones have others", async (t) => {
  t.is((await register(service, CLIENT)).clientId, clientId);
  for (const changed of [
    { ...CLIENT, client_name: "Example 2" },
    { redirect_uris: CLIENT.redirect_uris },
    { ...CLIENT, redirect_uris: ["http://127.0.0.1/callback/"] },
    { ...CLIENT, redirect_uris: [REDIRECT_URI, "http://localhost/callback"] },
  ]) {
    t.not((await register(service, changed)).clientId, clientId);
  }
});

const macStart = clientId.length - MAC_LENGTH;
for (const [what, start, end] of [
  ["registration", 0, macStart],
  ["MAC", macStart, clientId.length],
] as const) {
  test(`an id with another character at any position of its ${what} is unknown`, async (t) => {
    for (let position = start; position < end; position++) {
      const { status, location } = await authorize(changeAt(position));
      t.is(status, 400, `position ${position}`);
      t.is(location, "", `position ${position}`);
    }
  });
}

test("an id whose last character decodes to the same bytes is unknown", async (t) => {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const last = clientId.length - 1;
  const bytes = (id: string) => Buffer.from(id.slice(-MAC_LENGTH), "base64url").toString("hex");
  const alike = [...alphabet]
    .map((character) => changeAt(last, character))
    .filter((id) => bytes(id) === bytes(clientId));
  t.is(alike.length, 4);
  for (const id of alike) t.is((await authorize(id)).status, id === clientId ? 303 : 400, id);
});

const VARIATIONS: [string, string][] = [
  ["without its last character", clientId.slice(0, -1)],
  ["without its MAC", clientId.slice(0, -MAC_LENGTH)],
  ["with only a MAC", `lgd_${clientId.slice(-MAC_LENGTH)}`],
  ["with only its prefix", "lgd_"],
  ["without its prefix", clientId.slice(4)],
  ["in upper case", clientId.toUpperCase()],
  ["with a padded MAC", `${clientId}=`],
  ["with a trailing space", `${clientId} `],
  ["with a MAC in standard base64", `${clientId.slice(0, -MAC_LENGTH)}${"+/".repeat(21)}A`],
  ["with two MACs", clientId + clientId.slice(-MAC_LENGTH)],
  [
    "signed with another key",
    createRegisteredClientIds("a guess").issue({ name: "Example", redirectUris: [REDIRECT_URI] }),
  ],
];

for (const [what, id] of VARIATIONS) {
  test(`an id ${what} is unknown`, async (t) => {
    const { status, location } = await authorize(id);
    t.is(status, 400);
    t.is(location, "");
    const { status: refused, body } = await requestTokens(
      service,
      { clientId: id },
      { grant_type: "refresh_token", refresh_token: "x" },
    );
    t.is(refused, 401);
    t.is(body.error, "invalid_client");
  });
}

test("an id of another service is unknown", async (t) => {
  t.is((await authorize(clientId, other)).status, 400);
});

test("metadata is decompressed only after its MAC was verified, and to a limited size", (t) => {
  const ids = createRegisteredClientIds("a key");
  const long = ids.issue({ name: "x".repeat(16_000), redirectUris: [] });
  t.is(ids.verify(long)?.name.length, 16_000);
  const tooLong = ids.issue({ name: "x".repeat(100_000), redirectUris: [] });
  t.true(tooLong.length < 255);
  t.is(createRegisteredClientIds("another key").verify(tooLong), undefined);
  t.throws(() => ids.verify(tooLong), { code: "ERR_BUFFER_TOO_LARGE" });
});
