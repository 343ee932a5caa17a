import type { Settings } from "./config.ts";

const SECRET = /(SECRET|TOKEN|KEYS?)$/;

/** Returns the settings without secrets; of URLs, the user name and password are left out. */
export function withoutSecrets(settings: Settings): Record<string, unknown> {
  const { telemetry, ...others } = settings;
  const shown = Object.entries(others).filter(([name]) => !SECRET.test(name));
  return {
    ...Object.fromEntries(shown.map(([name, value]) => [name, show(value)])),
    telemetry: telemetry !== undefined,
  };
}

function show(value: unknown): unknown {
  if (value instanceof Set) return [...value];
  if (typeof value !== "string") return value;
  const url = /^[\w+.-]+:\/\/[^/]*@/.test(value) ? URL.parse(value) : null;
  if (!url) return value;
  url.username = url.password = "";
  return url.href;
}
