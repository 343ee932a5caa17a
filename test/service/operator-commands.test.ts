import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import { readSettings } from "../../server/settings/config.ts";
import { isAcceptedByApi } from "../harness/clients/oauth.ts";
import { commandRunner } from "../harness/commands.ts";
import { temporaryFolder } from "../harness/program.ts";
import { startTestService } from "../harness/service.ts";

const service = await startTestService();
const folder = temporaryFolder("commands");
const run = commandRunner({ ...service, settings: readSettings({}) });

const SHAPES: [RegExp, string][] = [
  [/^(org|usr|sec|trs)_[0-9A-HJKMNP-TV-Z]{26}$/, "id"],
  [/^lgc_[\w-]{22}$/, "lgc_"],
  [/^lgs_[\w-]{49}$/, "lgs_"],
  [/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, "time"],
  [/^http:\/\/localhost:\d+\/auth\/reset-password\/[\w-]{43}$/, "reset link"],
];

function shapeOf(value: unknown): unknown {
  if (typeof value === "string") return SHAPES.find(([pattern]) => pattern.test(value))?.[1] ?? value;
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, shapeOf(item)]));
}

const client = { client_id: "lgc_", client_secret: "lgs_" };
const organization = (name: string, plan: string) => ({ id: "id", name, plan });
const create = async (name: string, plan = "growth") => run(["org", "create", name, "--plan", plan]);

const SUBJECT = "repo:octo-org@65/octo-repo@74:ref:refs/heads/main";
const RULE = [
  ...["--name", "Deploy", "--issuer", "https://token.actions.githubusercontent.com"],
  ...["--subject", SUBJECT, "--scope", "links:write webhooks:read"],
];
const paid: string = (await create("Paid")).organization.id;
const free: string = (await create("Unpaid", "free")).organization.id;
const PASSWORD = "a password for people";
await run(["user", "create", "taken", "--org", free], PASSWORD);
const rotate = ["client", "rotate", paid];
const uris = ["client", "redirect-uris", paid];
const userNamed = (name: string, ...rest: string[]) => ["user", "create", name, "--org", free, ...rest];
const rule = (...words: string[]) => ["trust", "add", paid, ...RULE, ...words];

test("org create and org plan return the client only if the call created it", async (t) => {
  t.deepEqual(shapeOf(await run(["org", "create", "Acme & Søns"])), {
    organization: organization("Acme & Søns", "free"),
  });
  t.deepEqual(shapeOf(await create("P", "premium")), { organization: organization("P", "premium"), client });
  const { organization: made } = await create("Upgraded", "free");
  t.deepEqual(shapeOf(await run(["org", "plan", made.id, "growth"])), {
    organization: organization("Upgraded", "growth"),
    client,
  });
  for (const plan of ["growth", "premium", "free", "premium"])
    t.deepEqual(await run(["org", "plan", made.id, plan]), { organization: { ...made, plan } });
});

test("org list and org show never return a secret", async (t) => {
  const made = await create("Shown");
  const list = await run(["org", "list"]);
  const listed = list.organizations.find(({ id }: { id: string }) => id === made.organization.id);
  t.deepEqual(listed, made.organization);
  const shown = await run(["org", "show", made.organization.id]);
  const last4 = made.client.client_secret.slice(-4);
  const secret = { id: "id", last4, created_at: "time", expires_at: null, last_used_at: null, callers: [] };
  t.deepEqual(shapeOf(shown), {
    organization: organization("Shown", "growth"),
    client: { client_id: "lgc_", redirect_uris: [], secrets: [secret], keys: [], fapi: false },
  });
  t.notRegex(JSON.stringify([list, shown]), /lgs_/);
  const { organization: free } = await create("Free", "free");
  t.deepEqual(await run(["org", "show", free.id]), { organization: free });
});

test("switches of an organization take on or off", async (t) => {
  const { organization: made } = await create("Switched");
  for (const [word, isOn] of [
    ["on", true],
    ["off", false],
  ] as const) {
    const set = (name: string) => run(["org", name, made.id, word]);
    t.deepEqual(await set("require-dpop"), { require_dpop: isOn });
    t.deepEqual(await set("require-second-factor"), { require_second_factor: isOn });
    t.deepEqual(await set("enterprise-authorization"), { organization: made, enabled: isOn });
  }
});

test("a client gets a key instead of its secrets, and can follow FAPI 2.0 then", async (t) => {
  const { id } = (await create("Bank")).organization;
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const [file, privateFile] = [path.join(folder, "public.pem"), path.join(folder, "private.pem")];
  writeFileSync(file, publicKey.export({ type: "spki", format: "pem" }));
  writeFileSync(privateFile, privateKey.export({ type: "pkcs8", format: "pem" }));
  const { key } = await run(["client", "add-key", id, file]);
  for (const [refused, expected] of [
    [file, { code: "duplicate_key" }],
    [privateFile, { message: /must be the public key, not the private one/ }],
    [path.join(folder, "missing"), { code: "file_not_found" }],
  ] as const)
    await t.throwsAsync(run(["client", "add-key", id, refused]), expected);
  t.deepEqual((await run(["client", "remove-secrets", id])).secrets, []);
  t.like((await run(["org", "show", id])).client, { keys: [key], secrets: [], fapi: false });
  t.deepEqual(await run(["org", "fapi", id, "on"]), { fapi: true });
  await t.throwsAsync(run(["client", "remove-key", id, key.id]), { code: "fapi_conflict" });
  t.deepEqual(await run(["org", "fapi", id, "off"]), { fapi: false });
  t.deepEqual(await run(["client", "remove-key", id, key.id]), { removed: key.id });
  t.is((await run(["client", "rotate", id])).previous_expires_at, null);
});

test("client rotate returns the new secret and when the old one expires", async (t) => {
  const made = await create("Rotated");
  const HOURS: [string[], number][] = [
    [[], 24],
    [["--overlap", "7d"], 168],
    [["--overlap", "0h"], 0],
    [["--compromised"], 0],
  ];
  const { client_id: clientId, client_secret: clientSecret } = made.client;
  const token = await service.token({ clientId, clientSecret });
  for (const [words, hours] of HOURS) {
    const before = Date.now();
    const rotation = await run(["client", "rotate", made.organization.id, ...words]);
    t.deepEqual(shapeOf(rotation), { ...client, previous_expires_at: "time" });
    t.is(rotation.client_id, made.client.client_id);
    const ends = Date.parse(rotation.previous_expires_at) - hours * 3_600_000;
    t.true(ends >= before && ends <= Date.now(), words.join(" "));
    t.is(await isAcceptedByApi(service, token), !words.includes("--compromised"), words.join(" "));
  }
  t.is((await run(["org", "show", made.organization.id])).client.secrets.length, 1);
});

test("a user is created with a role, shown, and gets a reset link by any spelling of the name", async (t) => {
  const { organization: made } = await create("People", "free");
  for (const [name, role] of Object.entries({ ada: "member", grace: "owner", "žofie.b": "admin" })) {
    const words = role === "member" ? [] : ["--role", role];
    const { user } = await run(["user", "create", name, "--org", made.id, ...words], PASSWORD);
    t.deepEqual(shapeOf(user), { id: "id", username: name });
    const organizations = [{ ...made, role }];
    t.deepEqual(await run(["user", "show", name]), { user, disabled: null, organizations });
  }
  for (const name of ["ada", "ADA"])
    t.deepEqual(shapeOf(await run(["user", "reset-password", name])), { url: "reset link" });
});

test("a trust rule is added, listed and removed", async (t) => {
  const { id } = (await create("CI")).organization;
  const claims = ["--claim", "repository_owner_id=65", "--claim", "ref=a=b"];
  const { trust_rule: rule } = await run(["trust", "add", id, ...RULE, ...claims]);
  t.like(rule, {
    name: "Deploy",
    issuer: "https://token.actions.githubusercontent.com",
    subject: SUBJECT,
    audience: service.url,
    claims: { repository_owner_id: "65", ref: "a=b" },
    scopes: ["links:write", "webhooks:read"],
    created_by: "operator",
  });
  t.deepEqual(await run(["trust", "list", id]), { trust_rules: [rule] });
  t.deepEqual(await run(["trust", "remove", id, rule.id]), { removed: rule.id });
  t.deepEqual(await run(["trust", "list", id]), { trust_rules: [] });
});

type Refusal = [words: string[], code: string, message: RegExp, password?: string];
const ANY = /^.{10,}/;
const NAME = /^The name must be 1 to 100 characters long\.$/;
const NOT_FOUND = / not found\.$/;
const commandsIn = (text: string) =>
  text
    .trim()
    .split(/,\s+/)
    .map((words) => words.split(" "));
const WITHOUT_CLIENT = commandsIn(
  `client rotate ${free}, client redirect-uris ${free} https://a.example/cb, client disable ${free}, org fapi ${free} on`,
);
const MISSING = commandsIn(`
  org plan org_none growth, org show org_none, org show ${paid.toLowerCase()}, org suspend org_none,
  client rotate org_none, trust list org_none, trust remove ${paid} trs_1, app withdraw ${paid} app_unknown,
  user create grace --org org_none, user reset-password unknown, link disable none, grant revoke none,
  audit verify org_none, audit head org_none`);
const REFUSALS: Refusal[] = [
  [["org", "create", "  "], "invalid_name", NAME],
  [["org", "create", "A", "--plan", "gold"], "invalid_plan", /^--plan must be free, /],
  [["org", "plan", paid, "gold"], "invalid_plan", /^The plan must be free, growth or premium\.$/],
  [["org", "require-dpop", paid, "yes"], "invalid_require_dpop", /must be on or off/],
  [["org", "member-apps", paid, "some"], "invalid_member_apps", ANY],
  [["org", "suspend", paid, "--reason", " "], "invalid_reason", /^--reason must be 1 to 255 characters/],
  [[...rotate, "--overlap=169h"], "invalid_overlap_hours", /^--overlap must be 0 to 168 hours\.$/],
  [[...rotate, "--overlap=1w"], "invalid_overlap_hours", ANY],
  [[...rotate, "--overlap", "1h", "--compromised"], "invalid_overlap_hours", ANY],
  [[...uris, "https://a.example/cb", "/callback"], "invalid_redirect_uris", ANY],
  ...WITHOUT_CLIENT.map((words): Refusal => [words, "no_client", ANY]),
  ...MISSING.map((words): Refusal => [words, "not_found", NOT_FOUND]),
  [["app", "approve", paid, "lgc_unknown"], "invalid_client_id", ANY],
  [["user", "create", "grace"], "invalid_org", /^Missing option --org <org-id>\.$/],
  [userNamed("grace", "--role", "king"), "invalid_role", /^--role must be owner, admin or member\.$/],
  [userNamed("TAKEN"), "username_taken", ANY],
  [userNamed("gracehopper"), "invalid_password", ANY, "Gracehopper"],
  [rule("--subject", "*"), "invalid_subject", /^--subject must name a subject; /],
  [rule("--scope", ""), "invalid_scopes", /^--scope must be a list of /],
  [rule("--claim", "ref"), "invalid_claims", /^--claim ref must have a value /],
  [["trust", "add", paid], "invalid_request", /^(Missing option --(issuer|name|scope|subject) .*\n?){4}$/],
];

test("what a command refuses has a code for scripts and a sentence for people", async (t) => {
  for (const [words, code, message, password] of REFUSALS) {
    const error = await t.throwsAsync(run(words, password ?? PASSWORD), { code, message }, words.join(" "));
    if (password) t.false(error?.message.includes(password), "the password is printed");
  }
});
