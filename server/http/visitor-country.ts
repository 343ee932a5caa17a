import { watchFile } from "node:fs";
import type { IncomingMessage } from "node:http";
import type { FindCountry } from "../../resources/links/redirect.ts";
import type { Log } from "../log.ts";
import type { Settings } from "../settings/config.ts";
import { readCountries } from "../settings/country-database.ts";
import { clientAddress, parseIpAddress } from "./client-ip.ts";

// ISO 3166-1 alpha-2 leaves XX to users; Cloudflare sends it for an unknown country.
const COUNTRY = /^(?!XX)[A-Z]{2}$/;

type CountrySettings = Pick<Settings, "COUNTRY_HEADER" | "MMDB_PATH" | "TRUST_PROXY">;

/** Reads the header of the proxy, then looks up the address. Undefined if neither is configured. */
export function createFindCountry(settings: CountrySettings, log: Log): FindCountry | undefined {
  const { COUNTRY_HEADER } = settings;
  const findByAddress = createFindByAddress(settings, log);
  if (COUNTRY_HEADER === undefined) return findByAddress;
  return (request) => {
    const country = request.headers[COUNTRY_HEADER];
    return typeof country === "string" && COUNTRY.test(country)
      ? country
      : (findByAddress?.(request) ?? null);
  };
}

/** Looks up the address that rate limits count. The database is read again when its file changes. */
function createFindByAddress({ MMDB_PATH: file, TRUST_PROXY }: CountrySettings, log: Log) {
  if (file === undefined) return undefined;
  let countries = readCountries(file);
  watchFile(file, { persistent: false }, () => {
    try {
      countries = readCountries(file);
      log.info({ file }, "read the country database again");
    } catch (error) {
      log.error({ file, reason: (error as Error).message }, "kept the previous country database");
    }
  });
  return (request: IncomingMessage) => {
    const address = parseIpAddress(clientAddress(request, TRUST_PROXY));
    const code = address && countries.get(address.text)?.country?.iso_code;
    return code && COUNTRY.test(code) ? code : null;
  };
}
