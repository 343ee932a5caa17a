import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import test from "ava";
import type { AnalyticsView } from "../../../resources/links/analytics.ts";
import { readSettings } from "../../../server/settings/config.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { countryDatabase } from "../../harness/country-database.ts";
import { startTestService } from "../../harness/service.ts";
import { until } from "../../harness/webhooks.ts";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-countries-"));
const COUNTRIES = { "203.0.113.0/24": "CH", "2001:db8::/32": "SE", "127.0.0.0/8": "DE" };

function write(name: string, content: Buffer | string): string {
  const file = path.join(folder, name);
  writeFileSync(file, content);
  return file;
}

const MMDB_PATH = write("countries.mmdb", countryDatabase(COUNTRIES));
const service = await startTestService({ MMDB_PATH, TRUST_PROXY: "1", COUNTRY_HEADER: "X-Country" });
const direct = await startTestService({ MMDB_PATH });
test.after.always(async () => {
  await Promise.all([service.close(), direct.close()]);
  rmSync(folder, { recursive: true, force: true });
});

/** Returns the country of a click with these headers. */
async function countryOf(headers: Record<string, string>, at = service): Promise<string | null | undefined> {
  const api = apiAt(at.url, await at.token(await at.createOrganization()));
  const { id, slug } = await api.createLink();
  await apiAt(at.url).get(`/${slug}`, headers);
  const { countries } = (await api.get<AnalyticsView>(`/v1/links/${id}/analytics`)).body;
  return countries[0]?.country;
}

test("the country is that of the address that rate limits count", async (t) => {
  const addresses: [forwardedFor: string, country: string | null][] = [
    ["203.0.113.9", "CH"],
    ["203.0.113.9:5678", "CH"],
    ["::ffff:203.0.113.9", "CH"],
    ["2001:db8::1", "SE"],
    ["203.0.113.9, 2001:db8::1", "SE"],
    ["198.51.100.1", null],
    ["2001:db9::1", null],
    ["not an address", "DE"],
  ];
  for (const [address, country] of addresses)
    t.is(await countryOf({ "x-forwarded-for": address }), country, address);
  t.is(await countryOf({ "x-forwarded-for": "203.0.113.9" }, direct), "DE", "no proxy is trusted");
});

test("the country in the header of COUNTRY_HEADER wins over that of the address", async (t) => {
  const address = { "x-forwarded-for": "203.0.113.9" };
  t.is(await countryOf({ ...address, "x-country": "FR" }), "FR");
  t.is(await countryOf({ ...address, "x-country": "XX" }), "CH", "which is an unknown country");
  t.is(await countryOf({ ...address, "cf-ipcountry": "FR" }), "CH", "another header");
  t.is(await countryOf({ ...address, "x-country": "FR" }, direct), "DE", "no header is set");
});

test("a wrong file is rejected at start, by the name of the setting", (t) => {
  const wrong: [file: string, reason: string][] = [
    [path.join(folder, "absent.mmdb"), "can't be read: ENOENT"],
    [folder, "can't be read: EISDIR"],
    [
      write("text.mmdb", "203.0.113.0/24,CH"),
      "must be a database in MaxMind's format (.mmdb, not compressed)",
    ],
    [write("empty.mmdb", ""), "must be a database in MaxMind's format (.mmdb, not compressed)"],
    [
      write("countries.mmdb.gz", gzipSync(countryDatabase(COUNTRIES))),
      "must be a database in MaxMind's format (.mmdb, not compressed)",
    ],
    [
      write("asn.mmdb", countryDatabase(COUNTRIES, "Test-ASN")),
      "must be a database of countries, not Test-ASN",
    ],
  ];
  for (const [file, reason] of wrong)
    t.throws(() => readSettings({ MMDB_PATH: file }), {
      name: "InvalidSettings",
      message: `Invalid settings:\n  MMDB_PATH ${reason}`,
    });
  t.is(readSettings({ MMDB_PATH }).MMDB_PATH, MMDB_PATH);
});

test("a replaced file is read again, and a broken one changes nothing", async (t) => {
  const file = write("replaced.mmdb", countryDatabase(COUNTRIES));
  const own = await startTestService({ MMDB_PATH: file });
  t.teardown(own.close);
  t.is(await countryOf({}, own), "DE");
  write("replaced.mmdb", "broken");
  // The file is looked at every few seconds.
  await new Promise((resolve) => setTimeout(resolve, 6000));
  t.is(await countryOf({}, own), "DE");
  write("replaced.mmdb", countryDatabase({ "127.0.0.0/8": "IT" }));
  await until(async () => (await countryOf({}, own)) === "IT" || undefined);
  t.pass();
});
