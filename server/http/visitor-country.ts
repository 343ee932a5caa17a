import { watchFile } from "node:fs";
import type { FindCountry } from "../../resources/links/click-source.ts";
import type { Log } from "../log.ts";
import type { Settings } from "../settings/config.ts";
import { readCountries } from "../settings/country-database.ts";
import { clientAddress, parseIpAddress } from "./client-ip.ts";

const COUNTRY = /^[A-Z]{2}$/;

/** Looks up the address that rate limits count. The database is read again when its file changes. */
export function createFindCountry(
  { MMDB_PATH: file, TRUST_PROXY }: Pick<Settings, "MMDB_PATH" | "TRUST_PROXY">,
  log: Log,
): FindCountry {
  if (file === undefined) return () => null;
  let countries = readCountries(file);
  watchFile(file, { persistent: false }, () => {
    try {
      countries = readCountries(file);
      log.info({ file }, "read the country database again");
    } catch (error) {
      log.error({ file, reason: (error as Error).message }, "kept the previous country database");
    }
  });
  return (request) => {
    const address = parseIpAddress(clientAddress(request, TRUST_PROXY));
    const code = address && countries.get(address.text)?.country?.iso_code;
    return code && COUNTRY.test(code) ? code : null;
  };
}
