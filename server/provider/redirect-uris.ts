const MAX_URIS = 20;
const MAX_LENGTH = 2048;
const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);
// Schemes that a browser or the system gives a meaning of its own.
const FORBIDDEN = new Set(
  "javascript data vbscript file blob about view-source filesystem ws wss ftp ftps gopher chrome resource jar \
mailto tel sms urn intent content".split(" "),
);

/**
 * Why a list cannot be a client's redirect URIs: the place in the list and the rule, for each wrong one. Accepted are
 * https on a host that is not loopback, http on loopback (with any port, RFC 8252 §7.3), and private-use schemes
 * (RFC 8252 §7.1).
 */
export function refuseRedirectUris(uris: string[]): { index: number; message: string }[] {
  if (uris.length > MAX_URIS)
    return [{ index: MAX_URIS, message: `A client has at most ${MAX_URIS} redirect URIs.` }];
  return uris.flatMap((uri, index) => {
    const message = uris.indexOf(uri) < index ? "This redirect URI is there twice." : refuse(uri);
    return message ? [{ index, message }] : [];
  });
}

function refuse(uri: string): string | undefined {
  if (uri.length > MAX_LENGTH) return `A redirect URI has at most ${MAX_LENGTH} characters.`;
  if (/[^!-~]|\\/.test(uri)) return "Use ASCII without spaces or backslashes.";
  const url = URL.parse(uri);
  if (!url) return "This is not an absolute URI."; // RFC 6749 §3.1.2
  if (uri.includes("#")) return "A redirect URI has no fragment."; // RFC 6749 §3.1.2
  if (url.username || url.password) return "A redirect URI has no user name or password.";
  if (uri.includes("*")) return "There are no wildcards: redirect URIs are compared exactly.";
  const scheme = url.protocol.slice(0, -1);
  if (scheme === "https") {
    return LOOPBACK.has(url.hostname) ? "On loopback, use http: nobody has a certificate for it." : undefined;
  }
  if (scheme === "http") {
    return LOOPBACK.has(url.hostname)
      ? undefined
      : "Use https; http is for localhost, 127.0.0.1 and [::1] only.";
  }
  return FORBIDDEN.has(scheme) ? `The scheme ${scheme} cannot be redirected to.` : undefined;
}
