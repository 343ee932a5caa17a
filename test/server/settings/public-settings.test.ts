import test from "ava";
import { readSettings } from "../../../server/settings/config.ts";
import { withoutSecrets } from "../../../server/settings/public-settings.ts";

const SECRET = "a-secret-that-must-not-be-shown-0123456789";

test("public settings have no secret and no credentials in URLs", (t) => {
  const settings = readSettings({
    DATABASE_URL: `postgres://linkgate:${SECRET}@db.example/linkgate`,
    REDIS_URL: `rediss://user:${SECRET}@redis.example`,
    SMTP_URL: `smtps://user:${SECRET}@mail.example`,
    SMTP_FROM: "links@example.com",
    RESOURCE_SERVER_SECRET: SECRET,
    METRICS_TOKEN: SECRET,
    ENCRYPTION_KEY: "A".repeat(43),
    IDP_ISSUER: "https://idp.example",
    IDP_CLIENT_ID: "linkgate",
    IDP_CLIENT_SECRET: SECRET,
    IDP_NAME: "Example",
    OTEL_EXPORTER_OTLP_ENDPOINT: "https://collector.example",
    OTEL_EXPORTER_OTLP_HEADERS: `api-key=${SECRET}`,
  });
  const shown = withoutSecrets(settings);
  const text = JSON.stringify(shown);
  t.false(text.includes(SECRET));
  t.false(text.includes("A".repeat(43)));
  t.like(shown, { DATABASE_URL: "postgres://db.example/linkgate", RATE_LIMIT: true, telemetry: true });
});
