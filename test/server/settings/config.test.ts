import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { InvalidSettings, readSettings } from "../../../server/settings/config.ts";
import { scopeWarningOf } from "../../../server/settings/rate-limit-scope.ts";
import { PRODUCTION } from "../../harness/production.ts";
import { addressOf, startServer, stopPrograms } from "../../harness/program.ts";

test.after.always(stopPrograms);
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-config-"));

const key = (bytes: number) => Buffer.alloc(bytes, 7).toString("base64url");

// Settings that are required with others.
const COMPANIONS: Record<string, Record<string, string>> = {
  INTROSPECTION_URL: { INTROSPECTION_CLIENT_SECRET: "a secret" },
  SMTP_URL: { SMTP_FROM: "noreply@links.example" },
  SMTP_FROM: { SMTP_URL: "smtps://mail.example" },
};

const RESOURCE_SERVER = {
  INTROSPECTION_URL: "https://auth.example.com/oauth/introspect",
  INTROSPECTION_CLIENT_SECRET: "a secret",
};

const WRONG: Record<string, string[]> = {
  PORT: ["abc", "-1", "65536", "80.5", "0x50", "1e3", " ", "80 81"],
  DATABASE_TIMEOUT: ["0", "301", "1.5", "10s"],
  METRICS_PORT: ["abc", "-1", "65536", "9100.5"],
  BASE_URL: [
    "links.example.com",
    "ftp://links.example.com",
    "https://links.example.com/",
    "https://links.example.com/app",
    "https://links.example.com?a=b",
    "https://links.example.com#a",
    "https://Links.example.com",
    "https://ada:pw@links.example.com",
    "http://links.example.com",
    "http://10.0.0.1",
    "http://0.0.0.0:3000",
    "http://localhost.example.com",
    "http://127.0.0.1.example.com",
  ],
  MCP_URL: [
    "/mcp",
    "https://links.example.com/mcp/",
    "https://links.example.com/mcp?a=b",
    "https://links.example.com/mcp#a",
    "https://ada@links.example.com/mcp",
    "https://:pw@links.example.com/mcp",
    "http://links.example.com/mcp",
  ],
  SHORT_URL: [
    "lnk.example.com",
    "https://lnk.example.com/",
    "https://lnk.example.com/a",
    "http://lnk.example.com",
    "mailto:a@b.example",
  ],
  DATABASE_URL: [
    "sqlite:",
    "sqlite:?synchronous=normal",
    "sqlite:links.sqlite?synchronous=maybe",
    "sqlite:links.sqlite?mode=ro",
    "links.sqlite",
    "file:links.sqlite",
    "oracle://db",
    "postgres:db",
  ],
  SMTP_URL: [
    "mail.example",
    "http://mail.example",
    "smtp://",
    "smtp://mail.example/inbox",
    "smtps://mail.example?tls.rejectUnauthorized=false",
    "smtp://ada@mail.example",
  ],
  SMTP_FROM: ["linkgate", "<a@b.example", "a@b.example\r\nBcc: c@d.example", "a@b.example, c@d.example"],
  COUNTRY_HEADER: ["CF IPCountry", "country:", "X-Lånd", "a\r\nb"],
  TRUST_PROXY: ["-1", "1.5", "true", "10.0.0.0/8"],
  WORKERS: ["0", "-1", "two", "1.5"],
  CIMD: [
    "true",
    "on",
    "KNOWN",
    "1",
    "any,https://tools.example/client.json",
    "off,https://tools.example/client.json",
    "https://tools.example/client.json",
    "known,",
    "known,http://tools.example/client.json",
    "known,https://tools.example/",
    "known,https://127.0.0.1/client.json",
    "known,https://tools.example/client.json,tools.example",
  ],
  RATE_LIMIT: ["false", "yes", "0"],
  REDIS_URL: [
    "127.0.0.1:6379",
    "http://127.0.0.1:6379",
    "redis://",
    "redis://127.0.0.1:99999",
    "redis://[::1",
  ],
  ACCESS_LOG_SAMPLE: ["-1", "1.1", "2", "10%", "half", "1e-3"],
  INTROSPECTION_URL: [
    "auth.example.com/oauth/introspect",
    "https://auth.example.com",
    "https://auth.example.com/",
    "http://localhost:3000",
    "https://auth.example.com/oauth/introspect?a=b",
    "http://auth.example.com/oauth/introspect",
  ],
  LOG_LEVEL: ["verbose", "INFO"],
  LOG_FORMAT: ["pretty", "JSON"],
  RESOURCE_SERVER_SECRET: ["too short", "x".repeat(31)],
  ENCRYPTION_KEY: ["secret", key(31), key(33), `${key(32)}!`, Buffer.alloc(32, 255).toString("base64")],
  ALLOWED_ORIGINS: [
    "*",
    "null",
    "https://app.example.com/",
    "app.example.com",
    "https://a.example, nonsense",
  ],
};

for (const [name, values] of Object.entries(WRONG)) {
  test(`an invalid ${name} is rejected in a sentence with its name`, (t) => {
    for (const value of values) {
      const error = t.throws(
        () => readSettings({ ...COMPANIONS[name], [name]: value }),
        { instanceOf: InvalidSettings },
        value,
      );
      const [head, ...lines] = error?.message.split("\n") ?? [];
      t.is(head, "Invalid settings:");
      t.is(lines.length, 1, `${value}: ${error?.message}`);
      t.regex(lines[0] ?? "", new RegExp(`^  ${name} .*(must|is not)`), value);
      t.notRegex(lines[0] ?? "", /NaN|Invalid input|received/, value);
    }
  });
}

test("all invalid settings are reported together, including those that only production rejects", (t) => {
  const all = Object.fromEntries(Object.entries(WRONG).map(([name, [value]]) => [name, value]));
  const { message } = t.throws(() => readSettings(all), { instanceOf: InvalidSettings });
  for (const name of Object.keys(WRONG)) t.regex(message, new RegExp(`^  ${name} `, "m"));
  const production = t.throws(() =>
    readSettings({
      NODE_ENV: "production",
      PORT: "abc",
      RATE_LIMIT: "off",
      DATABASE_URL: "postgres://db/linkgate",
    }),
  );
  for (const name of ["PORT", "RATE_LIMIT", "ENCRYPTION_KEY", "REGISTRATION", "SELF_SERVICE_PLANS"]) {
    t.regex(production?.message ?? "", new RegExp(`^  ${name} `, "m"));
  }
});

test("an invalid secret is not printed", (t) => {
  const { message } = t.throws(() =>
    readSettings({ RESOURCE_SERVER_SECRET: "hunter2", ENCRYPTION_KEY: "hunter3" }),
  );
  t.notRegex(message, /hunter/);
});

test("an empty setting counts as absent", (t) => {
  const empty = Object.fromEntries(Object.keys(WRONG).map((name) => [name, ""]));
  t.deepEqual(readSettings({ ...empty, HOST: "", NODE_ENV: "" }), readSettings({}));
});

test("the defaults are SQLite in data/ on port 3000 of this machine", (t) => {
  t.like(readSettings({}), {
    PORT: 3000,
    HOST: "127.0.0.1",
    BASE_URL: undefined,
    DATABASE_URL: "sqlite:data/linkgate.sqlite",
    TRUST_PROXY: 0,
    WORKERS: 1,
    CIMD: { accepted: "known", addresses: new Set() },
    RATE_LIMIT: true,
    LOG_LEVEL: "info",
    METRICS_PORT: undefined,
    isProduction: false,
  });
});

test("an http issuer is accepted on loopback hosts only", (t) => {
  for (const host of ["localhost", "127.0.0.1", "[::1]"]) {
    const url = `http://${host}:8080`;
    t.is(readSettings({ BASE_URL: url }).BASE_URL, url);
  }
  t.is(readSettings({ BASE_URL: "https://links.example.com" }).BASE_URL, "https://links.example.com");
});

test("production requires rate limits and, unless the database is SQLite, an encryption key", (t) => {
  const production = { ...PRODUCTION, ENCRYPTION_KEY: key(32) };
  t.true(readSettings({ ...production, DATABASE_URL: "postgres://db/linkgate" }).isProduction);
  t.true(readSettings(PRODUCTION).isProduction, "the key of SQLite is stored next to it");
  t.throws(() => readSettings({ ...production, RATE_LIMIT: "off" }), { message: /RATE_LIMIT must be on/ });
  for (const url of ["postgres://db/linkgate", "mysql://db/linkgate"]) {
    t.throws(() => readSettings({ ...PRODUCTION, DATABASE_URL: url }), {
      message: /ENCRYPTION_KEY/,
    });
    t.notThrows(() => readSettings({ DATABASE_URL: url }));
  }
});

test("production requires a decision on who can create an account and who changes plans", (t) => {
  const production = { NODE_ENV: "production" };
  const { message } = t.throws(() => readSettings(production), { instanceOf: InvalidSettings });
  t.deepEqual(message.split("\n"), [
    "Invalid settings:",
    "  REGISTRATION is required in production: open (everyone can create an account and an organization), invite (only users with an invitation can create an account) or closed (only the CLI creates accounts)",
    "  SELF_SERVICE_PLANS is required in production: on (owners and admins choose any plan at no charge) or off (only the CLI changes plans)",
  ]);
  t.throws(() => readSettings({ ...PRODUCTION, REGISTRATION: "" }), {
    message: /^ {2}REGISTRATION is required/m,
  });
  t.like(readSettings({}), { REGISTRATION: "open", SELF_SERVICE_PLANS: true });
  t.true(
    readSettings({ ...production, ...SHARED, ENCRYPTION_KEY: key(32), ...RESOURCE_SERVER }).isProduction,
  );
});

test("`.env` is read, the environment wins, and an empty variable falls back to `.env`", async (t) => {
  writeFileSync(
    path.join(folder, ".env"),
    "PORT=0\nBASE_URL=http://localhost:1111\nLOG_LEVEL=silent\nDATABASE_URL=sqlite:from-file.sqlite\n",
  );
  const server = startServer({
    cwd: folder,
    settings: { ...PRODUCTION, BASE_URL: "http://localhost:2222", LOG_LEVEL: "" },
  });
  t.is(await addressOf(server), "http://localhost:2222");
  const { code, stdout } = await server.stop();
  t.is(code, 0);
  t.is(stdout, "linkgate listening on http://localhost:2222\n");
});

const warningOf = (settings: Record<string, string>) =>
  scopeWarningOf(
    readSettings({
      ...PRODUCTION,
      BASE_URL: "https://linkgate.example.com",
      ENCRYPTION_KEY: key(32),
      ...settings,
    }),
  );

const SHARED = { DATABASE_URL: "postgres://linkgate@db.example.com/linkgate" };

test("a server whose database others can use, too, warns that its rate limits are its own", (t) => {
  t.regex(
    warningOf(SHARED) ?? "",
    /^Rate limits are shared by the workers of this server only\. If .* set REDIS_URL\./,
  );
});

for (const [what, settings] of Object.entries({
  "Redis counts for all servers": { ...SHARED, REDIS_URL: "redis://redis.example.com" },
  "no other server can use the database": { DATABASE_URL: "sqlite:linkgate.sqlite" },
  "it isn't in production": { ...SHARED, NODE_ENV: "development" },
})) {
  test(`a server doesn't warn if ${what}`, (t) => {
    t.is(warningOf(settings), undefined);
  });
}
