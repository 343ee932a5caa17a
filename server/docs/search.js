// Used by the server and by the script of the pages, so that both find the same.

/** The options of the index, which MiniSearch needs to read it. */
export const OPTIONS = {
  fields: ["title", "page", "href", "text"],
  storeFields: ["title", "page", "href", "excerpt", "weight"],
  processTerm: toStem,
};

const SEARCH = {
  boost: { title: 4, page: 3, href: 2 },
  boostDocument: (_id, _term, { weight }) => weight,
  prefix: (term) => term.length > 2,
  fuzzy: (term) => term.length > 4 && 0.2,
};
const RESULTS_MAX = 12;

/** Unites the forms of a word: retry, retries; limit, limits. */
function toStem(term) {
  return term
    .toLowerCase()
    .replace(/(?<=\w\w)(ies|y)$/, "i")
    .replace(/(?<=\w\w[^s])s$/, "");
}

/** Returns the best results: pages of this name, such as an error code, then sections with all words, then with some. */
export function find(index, query) {
  const all = index.search(query, { ...SEARCH, combineWith: "AND" });
  const ids = new Set(all.map(({ id }) => id));
  const some = all.length < RESULTS_MAX ? index.search(query, SEARCH).filter(({ id }) => !ids.has(id)) : [];
  const name = query.trim().toLowerCase();
  const isNamed = ({ page }) => page.toLowerCase() === name;
  const results = [...all, ...some];
  return [...results.filter(isNamed), ...results.filter((result) => !isNamed(result))].slice(0, RESULTS_MAX);
}
