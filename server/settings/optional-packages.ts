import { type Engine, engineOf } from "../../adapters/database/engine.ts";

const DRIVERS: Record<Engine, string[]> = { sqlite: [], postgres: ["pg"], mysql: ["mysql2"] };
const OPENTELEMETRY = [
  "api",
  "context-async-hooks",
  "core",
  "exporter-trace-otlp-http",
  "exporter-trace-otlp-proto",
  "resources",
  "sdk-trace",
].map((name) => `@opentelemetry/${name}`);

type Settings = { DATABASE_URL: string; REDIS_URL?: string | undefined };

/** Returns a message for each setting whose packages aren't installed: npm leaves out optional peer dependencies. */
export function findMissingPackages({ DATABASE_URL, REDIS_URL }: Settings, hasTelemetry: boolean): string[] {
  return [
    describeMissingDriver("DATABASE_URL", DATABASE_URL),
    describeMissing("REDIS_URL", REDIS_URL ? ["ioredis"] : []),
    describeMissing("OTEL_TRACES_EXPORTER", hasTelemetry ? OPENTELEMETRY : []),
  ].filter((problem) => problem !== undefined);
}

/** @param setting the setting or option that contains the URL */
export function describeMissingDriver(setting: string, databaseUrl: string): string | undefined {
  return describeMissing(setting, DRIVERS[engineOf(databaseUrl)]);
}

function describeMissing(setting: string, packages: string[]): string | undefined {
  const missing = packages.filter((name) => !isInstalled(name));
  if (missing.length === 0) return undefined;
  return `${setting} needs packages that aren't installed. Install them: npm install ${missing.join(" ")}. See "Optional packages" in docs/operate/deploy.md`;
}

function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
}
