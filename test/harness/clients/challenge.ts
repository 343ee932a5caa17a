type Parameters = Record<string, string>;

const PARAMETER = /([a-z_]+)="([^"\\]*)"/g;
const CHALLENGE = /^(Bearer|DPoP) ((?:[a-z_]+="[^"\\]*"(?:, (?!$)|$))+)$/;
// RFC 6750 §3: printable characters without quotes and backslashes; scopes are separated by single spaces.
const VALUE = /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/;
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/;

/**
 * Parses a `WWW-Authenticate` header (RFC 9110 §11.6.1) into the parameters of each scheme.
 * @throws Error if a challenge has no parameter, a malformed or a repeated one
 */
export function challengesIn(header: string): { Bearer?: Parameters; DPoP?: Parameters } {
  const challenges = header.split(/, (?=(?:Bearer|DPoP) )/).map((challenge): [string, Parameters] => {
    const [, scheme = "", parameters = ""] = CHALLENGE.exec(challenge) ?? [];
    if (!scheme) throw new Error(`not a challenge: ${challenge}`);
    const pairs = [...parameters.matchAll(PARAMETER)].map(([, name = "", value = ""]): [string, string] => {
      if (!(name === "scope" ? SCOPE : VALUE).test(value)) throw new Error(`malformed: ${name}="${value}"`);
      return [name, value];
    });
    return [scheme, unique(pairs)];
  });
  return unique(challenges);
}

function unique<T>(entries: [string, T][]): Record<string, T> {
  const named = Object.fromEntries(entries);
  if (Object.keys(named).length < entries.length) throw new Error(`a name is repeated: ${entries}`);
  return named;
}

export function challengeOf({ headers }: { headers: Headers }): Parameters | undefined {
  const header = headers.get("www-authenticate");
  return header?.startsWith("Bearer ") ? challengesIn(header).Bearer : undefined;
}
