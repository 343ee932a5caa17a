import { existsSync, readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { z } from "zod";
import { validateCharacters } from "../credentials/names.ts";
import { validateCountryDatabase } from "./country-database.ts";
import { findMissingPackages } from "./optional-packages.ts";
import { findOpenChoices } from "./production-choices.ts";
import {
  choice,
  contact,
  count,
  databaseUrl,
  daysByPlan,
  headerName,
  hosts,
  httpUrl,
  isDecodable,
  isPlain,
  keyFile,
  listenHost,
  longSecret,
  metadataDocuments,
  origins,
  parseEncryptionKeys,
  port,
  requireHttps,
  seconds,
  secureOrigin,
  sender,
  share,
  smtpUrl,
  toggle,
  validated,
} from "./setting-types.ts";
import { readTelemetrySettings, type TelemetrySettings } from "./telemetry-settings.ts";

export type Settings = z.output<typeof schema> & { isProduction: boolean; telemetry?: TelemetrySettings };

/** The message lists all invalid settings. */
export class InvalidSettings extends Error {
  constructor(problems: string[]) {
    super(`Invalid settings:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
    this.name = "InvalidSettings";
  }
}

const schema = z.object({
  PORT: port.default(3000),
  HOST: listenHost.default("127.0.0.1"),
  BASE_URL: secureOrigin.optional(),
  MCP_URL: httpUrl((url, text) =>
    isPlain(url) && !text.endsWith("/")
      ? requireHttps(url)
      : "must have no credentials, query, fragment or trailing slash",
  ).optional(),
  SHORT_URL: secureOrigin.optional(),
  SHORT_ROOT_REDIRECT_URL: httpUrl(() => undefined).optional(),
  SHORT_NOT_FOUND_URL: httpUrl(() => undefined).optional(),
  DATABASE_URL: databaseUrl.default("sqlite:data/linkgate.sqlite"),
  DATABASE_TIMEOUT: seconds(1, 300).default(10),
  CLICK_DETAIL_DAYS: daysByPlan("90").prefault("90"),
  TRUST_PROXY: count(0).default(0),
  WORKERS: count(1).default(1),
  SHUTDOWN_DELAY: seconds(0, 300).default(0),
  CIMD: metadataDocuments.prefault("known"),
  DYNAMIC_REGISTRATION: choice("off", "stateless").default("off"),
  DEVICE_GRANT: toggle,
  IDP_ISSUER: httpUrl((url) =>
    isPlain(url) ? requireHttps(url) : "must have no credentials, query or fragment",
  ).optional(),
  IDP_CLIENT_ID: z.string().optional(),
  IDP_CLIENT_SECRET: z.string().optional(),
  IDP_NAME: z
    .string()
    .max(50, { error: "must be at most 50 characters long" })
    .refine((name) => validateCharacters(name) === undefined, {
      error: "must not contain control characters or invisible characters",
    })
    .optional(),
  REGISTRATION: choice("open", "invite", "closed").default("open"),
  SELF_SERVICE_PLANS: toggle,
  RATE_LIMIT: toggle,
  REDIS_URL: z
    .string()
    .refine((text) => /^rediss?:\/\/./.test(text) && URL.canParse(text) && isDecodable(text), {
      error: "must be redis://<host>:<port> or rediss://<host>:<port>",
    })
    .optional(),
  RESOURCE_SERVER_SECRET: longSecret.optional(),
  INTROSPECTION_URL: httpUrl((url) => {
    if (!isPlain(url)) return "must have no credentials, query or fragment";
    if (url.pathname === "/") return "must include the path of the endpoint, such as /oauth/introspect";
    return requireHttps(url);
  }).optional(),
  INTROSPECTION_CLIENT_ID: z.string().default("resource-server"),
  INTROSPECTION_CLIENT_SECRET: z.string().optional(),
  LOG_LEVEL: choice("fatal", "error", "warn", "info", "debug", "trace", "silent").default("info"),
  LOG_FORMAT: choice("auto", "json", "text").default("auto"),
  ACCESS_LOG_SAMPLE: share.default(1),
  ENCRYPTION_KEY: z
    .string()
    .refine((text) => parseEncryptionKeys(text) !== undefined, {
      error: "must be 32 bytes in base64url, or several such keys separated by commas",
    })
    .optional(),
  ENCRYPTION_KEY_FILE: keyFile.optional(),
  ALLOWED_ORIGINS: origins,
  WEBHOOK_ALLOW_HOSTS: hosts,
  SMTP_URL: smtpUrl.optional(),
  SMTP_FROM: sender.optional(),
  COUNTRY_HEADER: headerName.optional(),
  MMDB_PATH: validated(validateCountryDatabase).optional(),
  METRICS_PORT: port.optional(),
  METRICS_TOKEN: longSecret.optional(),
  SECURITY_CONTACT: contact.optional(),
  SUPPORT_CONTACT: contact.optional(),
  LEAK_REPORT_KEYS: z.string().optional(),
  NODE_ENV: z.string().optional(),
});

/** The settings that are declared here. `telemetry-settings.ts` declares those of OpenTelemetry. */
export const SETTING_NAMES = Object.keys(schema.shape);

/** The environment wins over `.env`. Empty values count as absent. Throws InvalidSettings. */
export function readSettings(environment: NodeJS.ProcessEnv = withEnvFile()): Settings {
  const present = withoutEmpty(environment);
  const result = schema.safeParse(present);
  const isProduction = present.NODE_ENV === "production";
  const telemetryProblems: string[] = [];
  const telemetry = readTelemetrySettings(present, telemetryProblems);
  const problems = [
    ...(result.error?.issues ?? []).map((issue) => `${issue.path.join(".")} ${issue.message}`),
    ...findConflicts(present),
    ...telemetryProblems,
    ...(result.success ? findMissingPackages(result.data, telemetry !== undefined) : []),
    ...(isProduction ? findProductionErrors(present) : []),
  ];
  if (!result.success || problems.length) throw new InvalidSettings(problems);
  return { ...result.data, isProduction, ...(telemetry && { telemetry }) };
}

/** Returns variables of a command that aren't settings of the server. Those of the environment win over `.env`. */
export function readVariables<Name extends string>(...names: Name[]): Partial<Record<Name, string>> {
  const environment = withoutEmpty(withEnvFile());
  const entries = names.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(entries);
}

const IDENTITY_PROVIDER = ["IDP_ISSUER", "IDP_CLIENT_ID", "IDP_CLIENT_SECRET", "IDP_NAME"];
// The second is required with the first.
const COMPANIONS = [
  ["INTROSPECTION_URL", "INTROSPECTION_CLIENT_SECRET"],
  ["INTROSPECTION_CLIENT_ID", "INTROSPECTION_URL"],
  ["SHORT_ROOT_REDIRECT_URL", "SHORT_URL"],
  ["SHORT_NOT_FOUND_URL", "SHORT_URL"],
  ["SMTP_URL", "SMTP_FROM"],
  ["SMTP_FROM", "SMTP_URL"],
] as const;

function findConflicts(present: NodeJS.ProcessEnv): string[] {
  const problems = COMPANIONS.filter(([name, other]) => present[name] && !present[other]).map(
    ([name, other]) => `${other} is required with ${name}`,
  );
  if (present.ENCRYPTION_KEY && present.ENCRYPTION_KEY_FILE)
    problems.push("ENCRYPTION_KEY_FILE must not be set together with ENCRYPTION_KEY");
  const missing = IDENTITY_PROVIDER.filter((name) => !present[name]);
  if (missing.length > 0 && missing.length < IDENTITY_PROVIDER.length)
    problems.push(...missing.map((name) => `${name} is required with the other IDP_* settings`));
  return problems;
}

function findProductionErrors(present: NodeJS.ProcessEnv): string[] {
  const { RATE_LIMIT, ENCRYPTION_KEY, ENCRYPTION_KEY_FILE, DATABASE_URL } = present;
  const problems = findOpenChoices(present);
  if (RATE_LIMIT === "off") problems.push("RATE_LIMIT must be on in production (NODE_ENV=production)");
  if (!ENCRYPTION_KEY && !ENCRYPTION_KEY_FILE && DATABASE_URL && !DATABASE_URL.startsWith("sqlite:"))
    problems.push(
      "ENCRYPTION_KEY or ENCRYPTION_KEY_FILE is required in production unless the database is SQLite (32 bytes, base64url)",
    );
  return problems;
}

function withEnvFile(): NodeJS.ProcessEnv {
  const file = existsSync(".env") ? parseEnv(readFileSync(".env", "utf8")) : {};
  // OpenTelemetry's exporters read the environment themselves.
  for (const name of Object.keys(file)) if (name.startsWith("OTEL_")) process.env[name] ||= file[name];
  return { ...file, ...withoutEmpty(process.env) };
}

function withoutEmpty(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ""));
}
