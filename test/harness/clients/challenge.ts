/** Parses the parameters of a `WWW-Authenticate: Bearer` header (RFC 9110 §11.6.1); undefined for other headers. */
export function challengeOf({ headers }: { headers: Headers }): Record<string, string> | undefined {
  const header = headers.get("www-authenticate");
  if (!header?.startsWith("Bearer ")) return undefined;
  const parameters = [...header.slice("Bearer ".length).matchAll(/([a-z_]+)="([^"\\]*)"(?:, |$)/g)];
  const read = parameters.map(([whole]) => whole).join("");
  if (read !== header.slice("Bearer ".length)) throw new Error(`not a challenge: ${header}`);
  const names = parameters.map(([, name]) => name);
  if (new Set(names).size !== names.length) throw new Error(`duplicate parameter: ${header}`);
  return Object.fromEntries(parameters.map(([, name, value]) => [name, value]));
}
