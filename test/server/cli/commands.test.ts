import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { MIGRATIONS } from "../../../adapters/database/migrations/index.ts";
import { ROOT, runCommand, runShell, stopPrograms } from "../../harness/program.ts";

export const stage = "processes";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-cli-"));
const settings = { DATABASE_URL: `sqlite:${folder}/test.sqlite`, BASE_URL: "http://localhost:4321" };
test.after.always(stopPrograms);
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

/** Returns the result of a command that succeeds. */
async function answer(...words: string[]) {
  const { code, stdout, stderr } = await runCommand([...words, "--json"], { settings });
  if (code !== 0) throw new Error(`${words.join(" ")}: ${code} ${stderr}`);
  return JSON.parse(stdout);
}

const SHAPES: [RegExp, string][] = [
  [/^org_[0-9A-HJKMNP-TV-Z]{26}$/, "org_"],
  [/^usr_[0-9A-HJKMNP-TV-Z]{26}$/, "usr_"],
  [/^sec_[0-9A-HJKMNP-TV-Z]{26}$/, "sec_"],
  [/^lgc_[\w-]{22}$/, "lgc_"],
  [/^lgs_[\w-]{49}$/, "lgs_"],
  [/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, "time"],
  [/^http:\/\/localhost:4321\/auth\/reset-password\/[\w-]{43}$/, "reset link"],
];

/** Replaces values that differ between runs by their kinds. */
function shapeOf(value: unknown): unknown {
  if (typeof value === "string") return SHAPES.find(([pattern]) => pattern.test(value))?.[1] ?? value;
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, shapeOf(item)]));
}

const MIGRATION_NAMES = MIGRATIONS.map(({ name }) => name);

const client = { client_id: "lgc_", client_secret: "lgs_" };
const organization = (name: string, plan: string) => ({ id: "org_", name, plan });

test.serial("migrate lists the migrations it applied, and none the second time", async (t) => {
  t.deepEqual(await answer("migrate"), {
    applied: MIGRATION_NAMES,
  });
  t.deepEqual(await answer("migrate"), { applied: [] });
});

test.serial("org create returns the client on a paid plan only", async (t) => {
  t.deepEqual(shapeOf(await answer("org", "create", "Acme & Søns")), {
    organization: organization("Acme & Søns", "free"),
  });
  for (const plan of ["growth", "premium"]) {
    t.deepEqual(shapeOf(await answer("org", "create", plan, "--plan", plan)), {
      organization: organization(plan, plan),
      client,
    });
  }
  t.deepEqual(shapeOf(await answer("org", "create", "explicit", "--plan=free")), {
    organization: organization("explicit", "free"),
  });
});

test.serial("org plan returns the client only if this call created it", async (t) => {
  const { organization: made } = await answer("org", "create", "Upgraded");
  t.deepEqual(shapeOf(await answer("org", "plan", made.id, "growth")), {
    organization: organization("Upgraded", "growth"),
    client,
  });
  for (const plan of ["growth", "premium", "free", "premium"]) {
    t.deepEqual(await answer("org", "plan", made.id, plan), { organization: { ...made, plan } });
  }
});

test.serial("org require-dpop takes on or off", async (t) => {
  const { organization: made } = await answer("org", "create", "Bound", "--plan", "growth");
  for (const [word, require_dpop] of [
    ["on", true],
    ["off", false],
  ] as const) {
    t.deepEqual(await answer("org", "require-dpop", made.id, word), { require_dpop });
  }
  for (const [args, code] of [
    [[made.id, "yes"], "invalid_require_dpop"],
    [["org_none", "on"], "not_found"],
  ] as const) {
    const { stderr } = await runCommand(["org", "require-dpop", ...args, "--json"], { settings });
    t.is(JSON.parse(stderr).error.code, code);
  }
});

test.serial("org fapi takes on or off, and names what the client has to change first", async (t) => {
  const { organization: made } = await answer("org", "create", "Bank", "--plan", "growth");
  const refusal = async (...args: string[]) => {
    const { code, stderr } = await runCommand(["org", "fapi", ...args, "--json"], { settings });
    t.is(code, 1);
    return JSON.parse(stderr).error;
  };
  t.deepEqual(await refusal(made.id, "on"), {
    code: "fapi_conflict",
    message: "A client that follows FAPI 2.0 needs a public key. Add one first.",
  });
  const file = path.join(folder, "fapi.pem");
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  writeFileSync(file, publicKey.export({ type: "spki", format: "pem" }));
  const { key } = await answer("client", "add-key", made.id, file);
  await answer("client", "remove-secrets", made.id);
  t.deepEqual(await answer("org", "fapi", made.id, "on"), { fapi: true });
  t.true((await answer("org", "show", made.id)).client.fapi);
  for (const words of [
    ["client", "rotate", made.id],
    ["client", "redirect-uris", made.id, "http://127.0.0.1/callback"],
    ["client", "remove-key", made.id, key.id],
  ]) {
    const { stderr } = await runCommand([...words, "--json"], { settings });
    t.is(JSON.parse(stderr).error.code, "fapi_conflict");
  }
  t.deepEqual(await answer("org", "fapi", made.id, "off"), { fapi: false });
  t.is((await refusal(made.id, "yes")).code, "invalid_fapi");
  t.is((await refusal("org_none", "on")).code, "not_found");
  t.is((await refusal((await answer("org", "create", "Free")).organization.id, "on")).code, "no_client");
});

test.serial("org require-second-factor takes on or off", async (t) => {
  const { organization: made } = await answer("org", "create", "Strict");
  for (const [word, require_second_factor] of [
    ["on", true],
    ["off", false],
  ] as const) {
    t.deepEqual(await answer("org", "require-second-factor", made.id, word), { require_second_factor });
  }
});

test.serial("org enterprise-authorization takes on or off", async (t) => {
  const { organization: made } = await answer("org", "create", "Bound", "--plan", "growth");
  for (const [word, enabled] of [
    ["on", true],
    ["off", false],
  ] as const) {
    t.deepEqual(await answer("org", "enterprise-authorization", made.id, word), {
      organization: made,
      enabled,
    });
  }
  for (const [args, code] of [
    [[made.id, "yes"], "invalid_enabled"],
    [["org_none", "on"], "not_found"],
  ] as const) {
    const { stderr } = await runCommand(["org", "enterprise-authorization", ...args, "--json"], { settings });
    t.is(JSON.parse(stderr).error.code, code);
  }
});

test.serial("org list and org show never return a secret", async (t) => {
  const made = await answer("org", "create", "Shown", "--plan", "growth");
  const list = await answer("org", "list");
  t.true(list.organizations.length > 0);
  t.deepEqual(
    list.organizations.find(({ id }: { id: string }) => id === made.organization.id),
    made.organization,
  );
  const shown = await answer("org", "show", made.organization.id);
  t.deepEqual(shapeOf(shown), {
    organization: organization("Shown", "growth"),
    client: {
      client_id: "lgc_",
      redirect_uris: [],
      secrets: [
        {
          id: "sec_",
          last4: made.client.client_secret.slice(-4),
          created_at: "time",
          expires_at: null,
          last_used_at: null,
          callers: [],
        },
      ],
      keys: [],
      fapi: false,
    },
  });
  t.notRegex(JSON.stringify([list, shown]), /lgs_/);
  const { organization: free } = await answer("org", "create", "Free");
  t.deepEqual(await answer("org", "show", free.id), { organization: free });
});

test.serial("client keys are added and removed, and secrets removed", async (t) => {
  const { organization: made } = await answer("org", "create", "Keyed", "--plan", "growth");
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const file = path.join(folder, "public-key.pem");
  writeFileSync(file, publicKey.export({ type: "spki", format: "pem" }));
  const { key } = await answer("client", "add-key", made.id, file);
  t.deepEqual((await answer("org", "show", made.id)).client.keys, [key]);
  const fails = async (...words: string[]) => {
    const { code, stderr } = await runCommand([...words, "--json"], { settings });
    t.is(code, 1);
    return JSON.parse(stderr).error;
  };
  t.is((await fails("client", "add-key", made.id, file)).code, "duplicate_key");
  writeFileSync(file, privateKey.export({ type: "pkcs8", format: "pem" }));
  t.regex(
    (await fails("client", "add-key", made.id, file)).message,
    /must be the public key, not the private one/,
  );
  t.is((await fails("client", "add-key", made.id, path.join(folder, "missing"))).code, "file_not_found");
  t.deepEqual((await answer("client", "remove-secrets", made.id)).secrets, []);
  t.deepEqual((await answer("org", "show", made.id)).client.secrets, []);
  t.deepEqual(await answer("client", "remove-key", made.id, key.id), { removed: key.id });
  t.is((await fails("client", "remove-key", made.id, key.id)).code, "not_found");
  t.is((await answer("client", "rotate", made.id)).previous_expires_at, null);
});

test.serial("client rotate returns the new secret and when the old one expires", async (t) => {
  const made = await answer("org", "create", "Rotated", "--plan", "growth");
  const HOURS: [string[], number][] = [
    [[], 24],
    [["--overlap", "1h"], 1],
    [["--overlap", "168h"], 168],
    [["--overlap", "0h"], 0],
    [["--compromised"], 0],
  ];
  const secrets = new Set([made.client.client_secret]);
  for (const [words, hours] of HOURS) {
    const before = Date.now();
    const rotation = await answer("client", "rotate", made.organization.id, ...words);
    t.deepEqual(shapeOf(rotation), { ...client, previous_expires_at: "time" });
    t.is(rotation.client_id, made.client.client_id);
    secrets.add(rotation.client_secret);
    const ends = Date.parse(rotation.previous_expires_at) - hours * 3_600_000;
    t.true(ends >= before && ends <= Date.now(), words.join(" "));
  }
  t.is(secrets.size, HOURS.length + 1, "each secret is new");
  const { client: shown } = await answer("org", "show", made.organization.id);
  t.is(shown.secrets.length, 1);
});

test.serial("client redirect-uris replaces the list", async (t) => {
  const { organization: made, client: app } = await answer("org", "create", "App", "--plan", "growth");
  const lists = [
    ["https://app.example.com/callback", "http://127.0.0.1/callback", "com.example.app:/callback"],
    ["https://other.example.com/callback"],
    [],
  ];
  for (const redirect_uris of lists) {
    const expected = { client_id: app.client_id, redirect_uris };
    t.deepEqual(await answer("client", "redirect-uris", made.id, ...redirect_uris), expected);
    t.deepEqual((await answer("org", "show", made.id)).client.redirect_uris, redirect_uris);
  }
});

test.serial(
  "user create reads the password from stdin, and user reset-password returns a link",
  async (t) => {
    const { organization: made } = await answer("org", "create", "People");
    for (const [name, words] of Object.entries({
      ada: [],
      grace: ["--role", "owner"],
      "žofie.b": ["--role=admin"],
    })) {
      const words_ = ["user", "create", name, "--org", made.id, ...words, "--json"];
      const { code, stdout, stderr } = await runCommand(words_, { settings }, "a password for people\n");
      t.is(stderr, "");
      t.is(code, 0);
      t.deepEqual(shapeOf(JSON.parse(stdout)), { user: { id: "usr_", username: name } });
    }
    t.deepEqual(shapeOf(await answer("user", "reset-password", "ada")), { url: "reset link" });
    t.deepEqual(shapeOf(await answer("user", "reset-password", "ADA")), { url: "reset link" });
  },
);

test.serial("sweep returns the number of deleted rows of each kind", async (t) => {
  const { deleted } = await answer("sweep");
  for (const [kind, count] of Object.entries(deleted)) t.is(count, kind === "client_secrets" ? 5 : 0, kind);
  for (const kind of ["tokens", "sessions", "grants", "events", "deliveries"]) t.true(kind in deleted, kind);
});

test.serial("npm run --silent prints the same document and returns the exit code", async (t) => {
  const npm = `npm run --silent --prefix "${ROOT}" linkgate --`;
  const works = await runShell(`${npm} org list --json`, { settings });
  t.is(works.code, 0);
  t.deepEqual(JSON.parse(works.stdout), await answer("org", "list"));
  const fails = await runShell(`${npm} org show org_none --json`, { settings });
  t.is(fails.code, 1);
  t.is(fails.stdout, "");
});

test.serial("without --json, the result is printed as indented lines", async (t) => {
  const { code, stdout } = await runCommand(["org", "create", "Lines", "--plan", "growth"], { settings });
  t.is(code, 0);
  t.regex(
    stdout,
    /^organization:\n {2}id: org_\w{26}\n {2}name: Lines\n {2}plan: growth\nclient:\n {2}client_id: lgc_/,
  );
  const refused = await runCommand(["org", "show", "org_none"], { settings });
  t.deepEqual(refused, {
    code: 1,
    signal: null,
    stdout: "",
    stderr: "Organization org_none not found.\n",
  });
});

test.serial("without --json, a list is a table with aligned columns", async (t) => {
  const { organizations } = await answer("org", "list");
  const { stdout } = await runCommand(["org", "list"], { settings });
  const [name, head, ...lines] = stdout.trimEnd().split("\n");
  t.is(name, "organizations:");
  t.regex(head ?? "", /^ {2}id +name +plan$/);
  t.is(lines.length, organizations.length);
  const column = head?.indexOf("plan");
  for (const [index, { id, plan }] of organizations.entries()) {
    t.true(lines[index]?.startsWith(`  ${id}  `));
    t.is(lines[index]?.slice(column), plan);
  }
});
