// Used by the server and by the script of the form of a link, so that both treat a URL alike.

export const UTM_FIELDS = ["utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"];

/** Returns the UTM parameters of a URL, empty ones for those that it lacks. */
export function utmOf(url) {
  const values = Object.fromEntries(UTM_FIELDS.map((name) => [name, ""]));
  for (const pair of split(url).pairs.toReversed()) {
    const [name, value] = decode(pair);
    if (name in values) values[name] = value;
  }
  return values;
}

/** Sets parameters of a URL, or removes those with an empty value. The rest of its text stays as it is. */
export function withUtm(url, values) {
  const { base, pairs, fragment } = split(url);
  const left = new Map(Object.entries(values));
  const kept = pairs.flatMap((pair) => {
    const [name, value] = decode(pair);
    if (!(name in values)) return [pair];
    const next = left.get(name) ?? "";
    left.delete(name);
    if (next === "") return [];
    return [next === value ? pair : encode(name, next)];
  });
  const added = [...left].filter(([, value]) => value !== "").map(([name, value]) => encode(name, value));
  const query = [...kept, ...added].join("&");
  if (query === pairs.join("&")) return url;
  return base + (query && `?${query}`) + fragment;
}

function split(url) {
  const [, base, query, fragment = ""] = /^([^?#]*)\??([^#]*)(#.*)?$/s.exec(url);
  return { base, pairs: query === "" ? [] : query.split("&"), fragment };
}

function decode(pair) {
  const [[name, value] = ["", ""]] = new URLSearchParams(pair);
  return [name, value];
}

function encode(name, value) {
  return `${name}=${encodeURIComponent(value)}`;
}
