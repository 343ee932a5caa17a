import test from "ava";
import { InvalidSettings, readSettings, SETTING_NAMES } from "../../server/settings/config.ts";
import { scopeWarningOf } from "../../server/settings/rate-limit-scope.ts";
import { PRODUCTION } from "../harness/production.ts";
import { words } from "../harness/words.ts";

const key = (bytes: number) => Buffer.alloc(bytes, 7).toString("base64url");

// Settings that are required with others.
const COMPANIONS: Record<string, Record<string, string>> = {
  INTROSPECTION_URL: { INTROSPECTION_CLIENT_SECRET: "a secret" },
  SMTP_URL: { SMTP_FROM: "noreply@links.example" },
  SMTP_FROM: { SMTP_URL: "smtps://mail.example" },
};

const WRONG: Record<string, string[]> = {
  PORT: [" ", "80 81", ...words("abc -1 65536 80.5 0x50 1e3")],
  DATABASE_TIMEOUT: words("0 301 1.5 10s"),
  CLICK_DETAIL_DAYS: words("0 -1 1.5 90d 100000 growth growth=0 growth=90=1 gold=90 90,growth=30 growth=30,"),
  METRICS_PORT: words("abc -1 65536 9100.5"),
  BASE_URL: words(`
    links.example.com ftp://links.example.com https://links.example.com/ https://links.example.com/app
    https://links.example.com?a=b https://links.example.com#a https://Links.example.com
    https://ada:pw@links.example.com http://links.example.com http://10.0.0.1 http://0.0.0.0:3000
    http://localhost.example.com http://127.0.0.1.example.com`),
  MCP_URL: words(`
    /mcp https://links.example.com/mcp/ https://links.example.com/mcp?a=b https://links.example.com/mcp#a
    https://ada@links.example.com/mcp https://:pw@links.example.com/mcp http://links.example.com/mcp`),
  SHORT_URL: words(`
    lnk.example.com https://lnk.example.com/ https://lnk.example.com/a http://lnk.example.com mailto:a@b.example`),
  HOST: ["http://127.0.0.1", "127.0.0.1/8", "links example", "[::1]", "a,b"],
  ENCRYPTION_KEY_FILE: [key(32), Buffer.alloc(32, 255).toString("base64url")],
  DATABASE_URL: words(`
    sqlite: sqlite:?synchronous=normal sqlite:links.sqlite?synchronous=maybe sqlite:links.sqlite?mode=ro
    links.sqlite file:links.sqlite oracle://db postgres:db postgres://db:99999/linkgate mysql://ada:%ff@db/linkgate
    postgres://ada:pw@db/linkgate?sslcert=/missing.pem mysql://ada:pw@db/linkgate?ssl=true mysql://db/linkgate?ssl=on`),
  SMTP_URL: words(`
    mail.example http://mail.example smtp:// smtp://mail.example/inbox
    smtps://mail.example?tls.rejectUnauthorized=false smtp://ada@mail.example`),
  SMTP_FROM: ["linkgate", "<a@b.example", "a@b.example\r\nBcc: c@d.example", "a@b.example, c@d.example"],
  COUNTRY_HEADER: ["CF IPCountry", "country:", "X-Lånd", "a\r\nb"],
  SECURITY_CONTACT: [
    "https://a b",
    ...words("security@example.com mailto: mailto:a http://example.com tel:1"),
  ],
  TRUST_PROXY: words("-1 1.5 true 10.0.0.0/8"),
  WORKERS: words("0 -1 two 1.5"),
  CIMD: words(`
    true on KNOWN 1 any,https://tools.example/client.json off,https://tools.example/client.json
    https://tools.example/client.json known, known,http://tools.example/client.json known,https://tools.example/
    known,https://127.0.0.1/client.json known,https://tools.example/client.json,tools.example`),
  RATE_LIMIT: words("false yes 0"),
  REDIS_URL: words("127.0.0.1:6379 http://127.0.0.1:6379 redis:// redis://127.0.0.1:99999 redis://[::1"),
  ACCESS_LOG_SAMPLE: words("-1 1.1 2 10% half 1e-3"),
  INTROSPECTION_URL: words(`
    auth.example.com/oauth/introspect https://auth.example.com https://auth.example.com/ http://localhost:3000
    https://auth.example.com/oauth/introspect?a=b http://auth.example.com/oauth/introspect`),
  LOG_LEVEL: words("verbose INFO"),
  LOG_FORMAT: words("pretty JSON"),
  RESOURCE_SERVER_SECRET: ["too short", "x".repeat(31)],
  ENCRYPTION_KEY: ["secret", key(31), key(33), `${key(32)}!`, Buffer.alloc(32, 255).toString("base64")],
  ALLOWED_ORIGINS: words("* null https://app.example.com/ app.example.com https://a.example,nonsense"),
};

for (const [name, values] of Object.entries(WRONG))
  test(`an invalid ${name} is rejected in a sentence with its name`, (t) => {
    for (const value of values) {
      const read = () => readSettings({ ...COMPANIONS[name], [name]: value });
      const error = t.throws(read, { instanceOf: InvalidSettings }, value);
      const [head, ...lines] = error?.message.split("\n") ?? [];
      t.is(head, "Invalid settings:");
      t.is(lines.length, 1, `${value}: ${error?.message}`);
      t.regex(lines[0] ?? "", new RegExp(`^  ${name} .*(must|is not)`), value);
      t.notRegex(lines[0] ?? "", /NaN|Invalid input|received/, value);
    }
  });

test("all invalid settings are reported together, including those that only production rejects", (t) => {
  const all = Object.fromEntries(Object.entries(WRONG).map(([name, [value]]) => [name, value]));
  const production = { PORT: "abc", RATE_LIMIT: "off", DATABASE_URL: "postgres://db/linkgate" };
  const inProduction = words("PORT RATE_LIMIT ENCRYPTION_KEY REGISTRATION SELF_SERVICE_PLANS");
  for (const [settings, names] of [
    [{ ...all, OTEL_METRICS_EXPORTER: "otlp" }, [...Object.keys(WRONG), "OTEL_METRICS_EXPORTER"]],
    [{ ...production, NODE_ENV: "production" }, inProduction],
  ] as const) {
    const { message } = t.throws(() => readSettings(settings), { instanceOf: InvalidSettings });
    for (const name of names) t.regex(message, new RegExp(`^  ${name} `, "m"));
  }
});

const SEVERAL_HOSTS = words(`
  postgres://ada:hunter2@db1,db2/linkgate postgres://ada:hunter2@db1:5432,db2:5432/linkgate
  postgres://ada:hunter2@db1%2Cdb2/linkgate postgresql:///linkgate?host=db1,db2&password=hunter2
  postgres://ada:hunter2@db1/linkgate?target_session_attrs=read-write postgres://db1,db2?password=hunter2
  postgres://ada:hunter2@db1/linkgate?load_balance_hosts=random postgres://ada:hunter2@/linkgate?host=db1,db2
  mysql://ada:hunter2@db1,db2/linkgate mysql://ada:hunter2@db1:3306,db2:3306/linkgate
  mariadb://ada:hunter2@db1/linkgate?loadBalanceHosts=true mysql://ada:hunt@er2@db1,db2/linkgate`);

test("several hosts in DATABASE_URL are rejected in a sentence that names the way", (t) => {
  for (const DATABASE_URL of SEVERAL_HOSTS) {
    const { message } = t.throws(() => readSettings({ DATABASE_URL }), { instanceOf: InvalidSettings });
    t.regex(
      message,
      /\n {2}DATABASE_URL must name one host.*HAProxy.*\/primary.*operate\/high-availability\.md\)$/,
    );
    t.notRegex(message, /hunt|er2/);
  }
});

test("URLs of one database server are accepted as the drivers accept them", (t) => {
  for (const DATABASE_URL of words(`
    postgres://db/linkgate postgresql://ada:p%2Cw@db:5432/linkgate?sslmode=require postgres://ada:a,b@db/linkgate
    postgres://ada:100%@db/linkgate postgres://ada@/linkgate?host=/var/run/postgresql postgres:///linkgate
    postgres://%2Fvar%2Frun%2Fpostgresql/linkgate mysql://ada:p%40w@[::1]:3306/linkgate mariadb://db/linkgate
    mysql://db/linkgate?ssl={"rejectUnauthorized":false} mysql://db/linkgate?ssl=false`))
    t.is(readSettings({ DATABASE_URL }).DATABASE_URL, DATABASE_URL);
});

// Each has a password in another place, as if the value of another setting had been pasted.
const PASTED = words(`
  hunter2 https://ada:hunter2@links.example/ smtp://ada:%zzhunter2@mail.example:99999
  mysql://ada:hunter2@db1:3306,db2:3306/linkgate postgres://ada:hunter2/@db/linkgate,https://ada:hunter2@b.example`);

test("no setting's error contains a password or a key", (t) => {
  let rejected = 0;
  for (const name of SETTING_NAMES)
    for (const value of [...PASTED, ...PASTED.map((text) => `https://a.example,${text}`)]) {
      const error = t.throws(() => expectValid({ ...COMPANIONS[name], [name]: value }));
      if (error.message === VALID) continue;
      rejected += 1;
      t.true(error instanceof InvalidSettings, `${name}: ${error.stack}`);
      // A word on a list, or the name of a host, isn't a secret.
      const isWord = /^(ALLOWED_ORIGINS|WEBHOOK_ALLOW_HOSTS|CIMD)$/.test(name) && !value.includes("@");
      if (!isWord) t.notRegex(error.message, /hunter/, name);
    }
  t.true(rejected > 5 * SETTING_NAMES.length, String(rejected));
  t.notRegex(t.throws(() => readSettings({ ENCRYPTION_KEY_FILE: key(32) })).message, new RegExp(key(32)));
});

const VALID = "the settings are valid";

function expectValid(settings: Record<string, string>): never {
  readSettings(settings);
  throw new Error(VALID);
}

test("an empty setting counts as absent", (t) => {
  const empty = Object.fromEntries(Object.keys(WRONG).map((name) => [name, ""]));
  t.deepEqual(readSettings({ ...empty, HOST: "", NODE_ENV: "" }), readSettings({}));
});

test("the defaults are SQLite in data/ on port 3000 of this machine, and open registration", (t) => {
  t.like(readSettings({}), {
    ...{ HOST: "127.0.0.1", PORT: 3000, METRICS_PORT: undefined, BASE_URL: undefined, TRUST_PROXY: 0 },
    ...{ DATABASE_URL: "sqlite:data/linkgate.sqlite", WORKERS: 1, RATE_LIMIT: true, LOG_LEVEL: "info" },
    ...{ CIMD: { accepted: "known", addresses: new Set() }, REGISTRATION: "open", SELF_SERVICE_PLANS: true },
    isProduction: false,
  });
});

test("details of clicks are kept for 90 days, or as long as the setting says for all plans or for one", (t) => {
  const daysOf = (text?: string) => readSettings({ CLICK_DETAIL_DAYS: text }).CLICK_DETAIL_DAYS;
  t.deepEqual(daysOf(), { free: 90, growth: 90, premium: 90 });
  t.deepEqual(daysOf("365"), { free: 365, growth: 365, premium: 365 });
  t.deepEqual(daysOf("free=7, premium=99999"), { free: 7, growth: 90, premium: 99_999 });
});

test("an http issuer is accepted on loopback hosts only", (t) => {
  const loopback = words("http://localhost:8080 http://127.0.0.1:8080 http://[::1]:8080");
  for (const url of [...loopback, "https://links.example.com"])
    t.is(readSettings({ BASE_URL: url }).BASE_URL, url);
});

test("production requires rate limits and, unless the database is SQLite, an encryption key", (t) => {
  const production = { ...PRODUCTION, ENCRYPTION_KEY: key(32) };
  t.true(readSettings({ ...production, DATABASE_URL: "postgres://db/linkgate" }).isProduction);
  t.true(readSettings(PRODUCTION).isProduction, "the key of SQLite is stored next to it");
  t.throws(() => readSettings({ ...production, RATE_LIMIT: "off" }), { message: /RATE_LIMIT must be on/ });
  for (const url of ["postgres://db/linkgate", "mysql://db/linkgate"]) {
    t.throws(() => readSettings({ ...PRODUCTION, DATABASE_URL: url }), { message: /ENCRYPTION_KEY/ });
    t.notThrows(() => readSettings({ DATABASE_URL: url }));
  }
});

const SHARED = { DATABASE_URL: "postgres://linkgate@db.example.com/linkgate" };

test("production requires a decision on who can create an account and who changes plans", (t) => {
  const production = { NODE_ENV: "production" };
  const { message } = t.throws(() => readSettings(production), { instanceOf: InvalidSettings });
  t.deepEqual(message.split("\n"), [
    "Invalid settings:",
    "  REGISTRATION is required in production: open (everyone can create an account and an organization), invite (only users with an invitation can create an account) or closed (only the CLI creates accounts)",
    "  SELF_SERVICE_PLANS is required in production: on (owners and admins choose any plan at no charge) or off (only the CLI changes plans)",
  ]);
  const empty = () => readSettings({ ...PRODUCTION, REGISTRATION: "" });
  t.throws(empty, { message: /^ {2}REGISTRATION is required/m });
  const resourceServer = {
    INTROSPECTION_URL: "https://auth.example.com/oauth/introspect",
    INTROSPECTION_CLIENT_SECRET: "a secret",
  };
  t.true(readSettings({ ...production, ...SHARED, ENCRYPTION_KEY: key(32), ...resourceServer }).isProduction);
});

test("a server in production whose database others can use, too, warns that its rate limits are its own", (t) => {
  const warningOf = (settings: Record<string, string>) => {
    const production = { ...PRODUCTION, BASE_URL: "https://linkgate.example.com", ENCRYPTION_KEY: key(32) };
    return scopeWarningOf(readSettings({ ...production, ...settings }));
  };
  const warning = /^Rate limits are shared by the workers of this server only\. If .* set REDIS_URL\./;
  t.regex(warningOf(SHARED) ?? "", warning);
  for (const changes of [{ REDIS_URL: "redis://redis.example.com" }, { NODE_ENV: "development" }])
    t.is(warningOf({ ...SHARED, ...changes }), undefined);
  t.is(warningOf({ DATABASE_URL: "sqlite:linkgate.sqlite" }), undefined);
});
