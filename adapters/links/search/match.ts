import type { Knex } from "knex";
import type { LinkFilter } from "../../../resources/links/types.ts";
import { containsText, type Engine } from "../../database/engine.ts";
import type { LinkRow } from "../../database/link-tables.ts";
import { tagPattern } from "../row.ts";
import { foldText, variantsOf } from "./fold.ts";

const TEXTS = ["url", "slug", "title"] as const;
// Each letter outside of ASCII makes the statement longer. Further ones match any character in the database.
const MAX_FOLDED_LETTERS = 8;

/** How links are compared with a filter: first in the database, then exactly. */
export type Matcher = {
  /** Narrows a query to the links that match, and few others. */
  narrow(clause: Knex.QueryBuilder): void;
  /** Whether a link matches. Databases fold the case of some letters in their own way, and this doesn't. */
  matches(row: LinkRow): boolean;
};

/** Creates the matcher of a filter. */
export function createMatcher({ search, tag, archived }: LinkFilter, engine: Engine): Matcher {
  const text = search === undefined ? undefined : foldText(search);
  return {
    narrow(clause) {
      if (archived !== undefined) clause.where({ archived });
      if (tag !== undefined) clause.whereRaw(containsText(engine), ["tags", tagPattern(tag)]);
      if (text !== undefined) clause.where((texts) => matchAnyText(texts, text, engine));
    },
    matches: (row) =>
      text === undefined ||
      TEXTS.some((column) => row[column] !== null && foldText(row[column]).includes(text)),
  };
}

// PostgreSQL folds by the locale of the database, and MariaDB's default collations ignore accents, unless told not to.
const FOLDED = {
  sqlite: "lower(??)",
  postgres: 'lower(?? collate "C")',
  mysql: "lower(??) collate utf8mb4_bin",
};

function matchAnyText(clause: Knex.QueryBuilder, text: string, engine: Engine): void {
  const letters = [...new Set(text)].filter((letter) => variantsOfLetter(letter).length > 0);
  const folded = letters.slice(0, MAX_FOLDED_LETTERS);
  const others = new Set(letters.slice(MAX_FOLDED_LETTERS));
  const replacements = folded.flatMap((letter) =>
    variantsOfLetter(letter).map((variant) => [variant, letter]),
  );
  const sql = replacements.reduce((inner) => `replace(${inner}, ?, ?)`, FOLDED[engine]);
  for (const column of TEXTS) {
    clause.orWhereRaw(`${sql} like ? escape '!'`, [
      column,
      ...replacements.flat(),
      likePattern(text, others),
    ]);
  }
}

function variantsOfLetter(letter: string): string[] {
  return letter <= "\x7f" ? [] : variantsOf(letter);
}

/** Returns a LIKE pattern that matches the literal text. `!` is the escape character: no engine gives it a meaning. */
function likePattern(text: string, wildcards: Set<string>): string {
  const literal = (character: string) => (/[!%_]/.test(character) ? `!${character}` : character);
  const pattern = [...text].map((character) => (wildcards.has(character) ? "_" : literal(character)));
  return `%${pattern.join("")}%`;
}
