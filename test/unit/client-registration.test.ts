import { randomBytes } from "node:crypto";
import test from "ava";
import { errors } from "oidc-provider";
import type { AllowedClients } from "../../adapters/oauth/app-policy.ts";
import { appPolicyCheckOf } from "../../server/clients/app-policy.ts";
import { claimedNameOf, createRegisteredClientIds } from "../../server/clients/registered-client-id.ts";
import { issueId, parseRegistrationRequest } from "../../server/provider/registration.ts";
import { readSettings } from "../../server/settings/config.ts";

const redirect_uris = ["http://127.0.0.1/callback"];
const CLIENT = { name: "Example", redirectUris: redirect_uris };
const MAC_LENGTH = 43;

/** Requested values that are replaced, and unknown metadata, which is ignored. */
const REPLACED: [string, Record<string, unknown>][] = [
  ["no name", {}],
  ["client_secret_basic", { token_endpoint_auth_method: "client_secret_basic" }],
  ["further grants", { grant_types: ["authorization_code", "client_credentials", "implicit"] }],
  ["further response types", { response_types: ["code", "code id_token", "token"] }],
  ["null members", { client_name: null, grant_types: null, token_endpoint_auth_method: null }],
  ["a client id of its own", { client_id: "lgc_other", client_secret: "x" }],
  ["keys", { jwks: { keys: [] }, jwks_uri: "https://example.com/jwks" }],
];

for (const [what, members] of REPLACED)
  test(`a client may register with ${what}, and only its redirect URIs count`, (t) => {
    const parsed = parseRegistrationRequest({ redirect_uris, ...members });
    t.deepEqual(parsed, { name: "", redirectUris: redirect_uris });
  });

const NAMES: [given: string, name: string][] = [
  [" Example ", "Example"],
  ["यूनिक्स", "यूनिक्स"],
  ["Tiếng Việt – l’app", "Tiếng Việt – l’app"],
  ["Amp MCP Client (linkgate)", "Amp MCP Client"],
  ["Amp MCP Client (links)", "Amp MCP Client (links)"],
];

for (const [client_name, name] of NAMES)
  test(`a client that calls itself "${client_name}" is called "${name}"`, (t) =>
    t.is(parseRegistrationRequest({ redirect_uris, client_name }).name, name));

type Refusal = [what: string, members: unknown, rule: RegExp];

const REFUSED_URIS: Refusal[] = [
  ["no redirect URIs", undefined, /^redirect_uris must be an array of one or more/],
  ["an empty list of them", [], /^redirect_uris must be an array/],
  ["http", ["http://a.example/"], /^redirect_uris\[0\] must use https/],
  ["a fragment in another one", [...redirect_uris, "https://a.example/#"], /^redirect_uris\[1\] must not/],
  ["javascript", ["javascript:alert(1)"], /javascript scheme/],
  ["a line break in one", ["https://a.example/\nhttps://b.example/"], /ASCII/],
  ["a duplicate", [...redirect_uris, ...redirect_uris], /duplicate/],
];

const REFUSED: Record<string, Refusal[]> = {
  invalid_client_metadata: [
    ["null", null, /must be a JSON object/],
    ["a name that is a number", { client_name: 7 }, /^client_name must be a string/],
    ["a name of 101 characters", { client_name: "x".repeat(101) }, /^client_name must be 1 to 100 char/],
    ["a line break in the name", { client_name: "a\nhttps://evil.example/" }, /control characters/],
    ["a name that quotes itself", { client_name: "Claude” (by “Anthropic" }, /not contain quotation marks/],
    ["a name with a direction override", { client_name: "a\u202eb" }, /control characters/],
    ["a name that can't be seen", { client_name: "\u3164\u2800" }, /invisible characters/],
    ["a name that covers other lines", { client_name: `C${"\u0336\u035f".repeat(20)}` }, /3 combining marks/],
    ["the name of this server", { client_name: "linkgate (official)" }, /^client_name /],
    ["no code grant", { grant_types: ["client_credentials"] }, /contains authorization_code$/],
    ["grants as a string", { grant_types: "authorization_code" }, /^grant_types/],
    ["response types without code", { response_types: ["token"] }, /an array that contains code$/],
    ["a key of its own", { token_endpoint_auth_method: "private_key_jwt" }, /must be none/],
  ],
  invalid_redirect_uri: REFUSED_URIS.map(([what, list, rule]) => [what, { redirect_uris: list }, rule]),
  unapproved_software_statement: [
    ["a software statement", { software_statement: "e30.e30." }, /^software_statement must be absent/],
  ],
};

for (const [code, refusals] of Object.entries(REFUSED))
  for (const [what, members, rule] of refusals)
    test(`a registration with ${what} is refused with ${code}`, (t) => {
      const isObject = members instanceof Object && !Array.isArray(members);
      const body = isObject ? { redirect_uris, ...members } : members;
      const error = t.throws(() => parseRegistrationRequest(body), { instanceOf: errors.OIDCProviderError });
      t.is(error.error, code);
      t.regex(error.error_description ?? "", rule);
    });

const CURSOR = ["cursor://anysphere.cursor-mcp/oauth/callback", "http://localhost:8787/callback"];
const ids = createRegisteredClientIds("a key");
const clientId = ids.issue(CLIENT);
// Random text can't be compressed.
const long = (bytes: number) => `https://a.example/${randomBytes(bytes).toString("base64url")}`;

test("an id that would have more than 255 characters is refused, as is more than is compressed", (t) => {
  const repeated = ["a", "b"].map((host) => `https://${host}.example/${"x".repeat(1024)}`);
  for (const redirectUris of [[long(60), long(60), long(60)], repeated])
    t.throws(() => issueId(ids, { name: "", redirectUris }), { message: "invalid_redirect_uri" });
});

test("the ids of common apps have at most 120 characters", (t) => {
  const apps: [name: string, ...redirectUris: string[]][] = [
    ["Cursor", ...CURSOR, "https://www.cursor.com/agents/mcp/oauth/callback"],
    ["Gemini CLI MCP Client", "http://localhost:7777/oauth/callback"],
    ["GitHub Copilot CLI", "http://127.0.0.1:56679/"],
    ["n8n", "https://automation.example.com/rest/oauth2-credential/callback"],
  ];
  for (const [name, ...redirectUris] of apps) t.true(ids.issue({ name, redirectUris }).length <= 120, name);
});

test("an id contains its registration; equal ones of a day have the same, different ones have others", (t) => {
  t.like(ids.verify(clientId), CLIENT);
  t.is(ids.issue(CLIENT), clientId);
  for (const changed of [
    { ...CLIENT, name: "Example 2" },
    { ...CLIENT, name: "" },
    { ...CLIENT, redirectUris: ["http://127.0.0.1/callback/"] },
    { ...CLIENT, redirectUris: [...redirect_uris, "http://localhost/callback"] },
  ])
    t.not(ids.issue(changed), clientId);
});

test("an id with another character at any position is unknown", (t) => {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  for (let position = 0; position < clientId.length; position++)
    for (const character of alphabet) {
      if (character === clientId[position]) continue;
      const changed = clientId.slice(0, position) + character + clientId.slice(position + 1);
      t.is(ids.verify(changed), undefined, changed);
    }
});

const VARIATIONS: [string, string][] = [
  ["without its last character", clientId.slice(0, -1)],
  ["without its MAC", clientId.slice(0, -MAC_LENGTH)],
  ["with only a MAC", `lgd_${clientId.slice(-MAC_LENGTH)}`],
  ["without its prefix", clientId.slice(4)],
  ["with a trailing space", `${clientId} `],
  ["with a MAC in standard base64", `${clientId.slice(0, -MAC_LENGTH)}${"+/".repeat(21)}A`],
  ["with two MACs", clientId + clientId.slice(-MAC_LENGTH)],
  ["signed with another key", createRegisteredClientIds("a guess").issue(CLIENT)],
];

test("an id that is cut off, extended, written otherwise or signed with another key is unknown", (t) => {
  for (const [what, id] of VARIATIONS) t.is(ids.verify(id), undefined, what);
});

test("metadata is decompressed only after its MAC was verified, and to a limited size", (t) => {
  const fits = ids.issue({ name: "x".repeat(16_000), redirectUris: [] });
  t.is(ids.verify(fits)?.name.length, 16_000);
  const tooLong = ids.issue({ name: "x".repeat(100_000), redirectUris: [] });
  t.true(tooLong.length < 255);
  t.is(createRegisteredClientIds("another key").verify(tooLong), undefined);
  t.throws(() => ids.verify(tooLong), { code: "ERR_BUFFER_TOO_LARGE" });
});

test("a client is called by the name that it chose in quotation marks, or by all of its redirect targets", (t) => {
  t.is(claimedNameOf(clientId), "“Example”");
  const targets = ["https://claude.ai/a", "https://evil.example/", "com.evil.app://claude.com/"];
  const redirectUris = [...targets, "https://claude.ai/b"];
  t.is(claimedNameOf(ids.issue({ name: "", redirectUris })), "claude.ai, evil.example, com.evil.app");
});

const VS_CODE = ["https://vscode.dev/redirect", "http://127.0.0.1:33418/"];
const WEBSITE = "https://agent.example/callback";
const PRIVATE_USE = "com.example.app:/callback";

const MATRIX: [allowed: AllowedClients, what: string, redirectUris: string[], isAllowed: boolean][] = [
  ["known", "Cursor", CURSOR, true],
  ["known", "Visual Studio Code", VS_CODE, true],
  ["known", "an app on loopback", redirect_uris, true],
  ["known", "an app with a website", [WEBSITE], false],
  ["known", "an app with a website besides loopback", [...redirect_uris, WEBSITE], false],
  ["known", "an app with a private-use scheme", [PRIVATE_USE], false],
  ["any", "an app with a website", [WEBSITE], true],
  ["none", "Cursor", CURSOR, false],
];

for (const [allowedClients, what, redirectUris, isAllowed] of MATRIX)
  test(`an organization that allows ${allowedClients} ${isAllowed ? "accepts" : "refuses"} ${what}`, (t) => {
    const id = ids.issue({ name: "Claude", redirectUris });
    const policy = { allowedClients, memberApps: "any", isApproved: false } as const;
    for (const [DYNAMIC_REGISTRATION, isAccepted] of [
      ["stateless", isAllowed],
      ["off", false],
    ] as const) {
      const check = appPolicyCheckOf(readSettings({ DYNAMIC_REGISTRATION }));
      t.is(check(id, policy, "member"), isAccepted, DYNAMIC_REGISTRATION);
    }
  });

test("a client with a document is accepted as the setting and the organization say", (t) => {
  const ids = ["https://claude.ai/oauth/claude-code-client-metadata", "https://docs.example/client.json"];
  for (const [CIMD, allowedClients, accepted] of [
    ["any", "any", [true, true]],
    ["any", "known", [true, false]],
    ["any", "none", [false, false]],
    ["known", "any", [true, false]],
    ["off", "any", [false, false]],
  ] as const) {
    const check = appPolicyCheckOf(readSettings({ CIMD }));
    const policy = { allowedClients, memberApps: "any", isApproved: false } as const;
    t.deepEqual(
      ids.map((id) => check(id, policy, "member")),
      [...accepted],
      `${CIMD}, ${allowedClients}`,
    );
  }
});
