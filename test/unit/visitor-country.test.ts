import { writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import path from "node:path";
import { gzipSync } from "node:zlib";
import test from "ava";
import { createFindCountry } from "../../server/http/visitor-country.ts";
import { createLog } from "../../server/log.ts";
import { readSettings } from "../../server/settings/config.ts";
import { countryDatabase } from "../harness/country-database.ts";
import { temporaryFolder } from "../harness/program.ts";

const folder = temporaryFolder("countries");

function write(name: string, content: Buffer | string): string {
  const file = path.join(folder, name);
  writeFileSync(file, content);
  return file;
}

const MMDB_PATH = write("countries.mmdb", countryDatabase());
const BEHIND_PROXY = { MMDB_PATH, TRUST_PROXY: "1", COUNTRY_HEADER: "X-Country" };

function countryOf(headers: Record<string, string>, settings: Record<string, string> = BEHIND_PROXY) {
  const find = createFindCountry(readSettings(settings), createLog("silent"));
  return find?.({ headers, socket: { remoteAddress: "127.0.0.1" } } as unknown as IncomingMessage);
}

test("the country is that of the address that rate limits count", (t) => {
  for (const [address, country] of Object.entries({
    "203.0.113.9": "CH",
    "::ffff:203.0.113.9": "CH",
    "2001:db8::1": "SE",
    "203.0.113.9, 2001:db8::1": "SE",
    "198.51.100.1": null,
    "2001:db9::1": null,
    "not an address": "DE",
  }))
    t.is(countryOf({ "x-forwarded-for": address }), country, address);
  t.is(countryOf({ "x-forwarded-for": "203.0.113.9" }, { MMDB_PATH }), "DE", "no proxy is trusted");
});

test("the country in the header of COUNTRY_HEADER wins over that of the address", (t) => {
  const address = { "x-forwarded-for": "203.0.113.9" };
  t.is(countryOf({ ...address, "x-country": "FR" }), "FR");
  for (const unknown of ["XX", "fr", "T1", "FRA", "<>"])
    t.is(countryOf({ ...address, "x-country": unknown }), "CH", unknown);
  t.is(countryOf({ ...address, "cf-ipcountry": "FR" }), "CH", "another header");
  t.is(countryOf({ ...address, "x-country": "FR" }, { MMDB_PATH }), "DE", "no header is set");
});

test("a wrong file is rejected at start, by the name of the setting", (t) => {
  const format = "must be a database in MaxMind's format (.mmdb, not compressed)";
  const wrong: [file: string, reason: string][] = [
    [path.join(folder, "absent.mmdb"), "can't be read: ENOENT"],
    [folder, "can't be read: EISDIR"],
    [write("text.mmdb", "203.0.113.0/24,CH"), format],
    [write("empty.mmdb", ""), format],
    [write("countries.mmdb.gz", gzipSync(countryDatabase())), format],
    [
      write("asn.mmdb", countryDatabase("Test-Country", "Test-Network")),
      "must be a database of countries, not Test-Network",
    ],
  ];
  for (const [file, reason] of wrong) {
    const expected = { name: "InvalidSettings", message: `Invalid settings:\n  MMDB_PATH ${reason}` };
    t.throws(() => readSettings({ MMDB_PATH: file }), expected);
  }
});
