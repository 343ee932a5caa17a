import { type Engine, engineOf } from "../../adapters/database/engine.ts";
import { tryTo } from "../../resources/try-to.ts";
import { OPTIONAL_PACKAGES } from "../version.ts";

const DRIVERS: Record<Engine, string[]> = { sqlite: [], postgres: ["pg"], mysql: ["mysql2"] };
const OPENTELEMETRY = OPTIONAL_PACKAGES.filter((name) => name.startsWith("@opentelemetry/"));

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
  const missing = packages.filter((name) => !tryTo(() => import.meta.resolve(name)));
  if (missing.length === 0) return undefined;
  return `${setting} needs packages that aren't installed. Run: npm install ${missing.join(" ")}`;
}
