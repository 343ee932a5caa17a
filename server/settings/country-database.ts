import { readFileSync } from "node:fs";
import { type CountryResponse, Reader } from "mmdb-lib";
import { tryTo } from "../../resources/try-to.ts";

export type Countries = Reader<CountryResponse>;

const TYPES = /country|city|enterprise/i;

/** Returns what is wrong with a country database, as a predicate. */
export function validateCountryDatabase(file: string): string | undefined {
  try {
    readCountries(file);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Reads a database of countries in MaxMind's format. Throws an error whose message is a predicate. */
export function readCountries(file: string): Countries {
  const content = read(file);
  // There are a few hundred different records, and each is decoded once.
  const countries = tryTo(() => new Reader<CountryResponse>(content, { cache: new Map() }));
  if (!countries) throw new Error("must be a database in MaxMind's format (.mmdb, not compressed)");
  const { databaseType } = countries.metadata;
  if (!TYPES.test(databaseType)) throw new Error(`must be a database of countries, not ${databaseType}`);
  return countries;
}

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new Error(`can't be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}
