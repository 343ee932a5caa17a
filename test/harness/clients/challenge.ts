type Parameters = Record<string, string>;

const PARAMETER = /([a-z_]+)="([^"\\]*)"/g;
const CHALLENGE = /^(Bearer|DPoP) ((?:[a-z_]+="[^"\\]*"(?:, (?!$)|$))+)$/;

/** Parses a `WWW-Authenticate` header (RFC 9110 §11.6.1) into the parameters of each scheme. */
export function challengesIn(header: string): { Bearer?: Parameters; DPoP?: Parameters } {
  const challenges = header.split(/, (?=(?:Bearer|DPoP) )/).map((challenge): [string, Parameters] => {
    const [, scheme = "", parameters = ""] = CHALLENGE.exec(challenge) ?? [];
    if (!scheme) throw new Error(`not a challenge: ${challenge}`);
    const pairs = [...parameters.matchAll(PARAMETER)];
    return [scheme, unique(pairs.map(([, name = "", value = ""]) => [name, value]))];
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
