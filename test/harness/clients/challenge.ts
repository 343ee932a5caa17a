type Parameters = Record<string, string>;

const CHALLENGE =
  /(Bearer|DPoP) ((?:[a-z_]+="[^"\\]*"(?:, (?!(?:Bearer|DPoP) ))?)+)(?:, (?=(?:Bearer|DPoP) )|$)/g;

/** Parses a `WWW-Authenticate` header (RFC 9110 §11.6.1) into the parameters of each scheme. */
export function challengesIn(header: string): { Bearer?: Parameters; DPoP?: Parameters } {
  const matches = [...header.matchAll(CHALLENGE)];
  if (matches.map(([whole]) => whole).join("") !== header)
    throw new Error(`not a list of challenges: ${header}`);
  const schemes = matches.map(([, scheme, parameters = ""]) => [scheme, parse(parameters)]);
  if (new Set(schemes.map(([scheme]) => scheme)).size !== schemes.length) {
    throw new Error(`duplicate scheme: ${header}`);
  }
  return Object.fromEntries(schemes);
}

function parse(text: string): Parameters {
  const parameters = [...text.matchAll(/([a-z_]+)="([^"\\]*)"/g)];
  const names = parameters.map(([, name]) => name);
  if (new Set(names).size !== names.length) throw new Error(`duplicate parameter: ${text}`);
  return Object.fromEntries(parameters.map(([, name, value]) => [name, value]));
}

/** Returns the parameters of the `Bearer` challenge of a response; undefined if it has none. */
export function challengeOf({ headers }: { headers: Headers }): Parameters | undefined {
  const header = headers.get("www-authenticate");
  return header?.startsWith("Bearer ") ? challengesIn(header).Bearer : undefined;
}
