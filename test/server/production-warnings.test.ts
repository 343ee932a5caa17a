import test from "ava";
import { readSettings } from "../../server/config.ts";
import { productionWarningsOf } from "../../server/production-warnings.ts";

const warningsOf = (settings: Record<string, string>) =>
  productionWarningsOf(
    readSettings({
      NODE_ENV: "production",
      BASE_URL: "https://linkgate.example.com",
      ENCRYPTION_KEY: Buffer.alloc(32, 1).toString("base64url"),
      SELF_SERVICE_PLANS: "off",
      ...settings,
    }),
  ).join("\n");

const SHARED = { DATABASE_URL: "postgres://linkgate@db.example.com/linkgate" };

test("a server whose database others can use, too, warns that its rate limits are its own", (t) => {
  t.regex(warningsOf(SHARED), /^rate limits are shared by the workers of this server only; set REDIS_URL/);
});

for (const [what, settings] of Object.entries({
  "Redis counts for all servers": { ...SHARED, REDIS_URL: "redis://redis.example.com" },
  "no other server can use the database": { DATABASE_URL: "sqlite:linkgate.sqlite" },
  "it isn't in production": { ...SHARED, NODE_ENV: "development" },
})) {
  test(`a server doesn't warn if ${what}`, (t) => {
    t.is(warningsOf(settings), "");
  });
}
