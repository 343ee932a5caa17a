const MAX_TEXT = 2000;
const SECRET_HEADERS = /^(authorization|dpop|cookie|set-cookie)$/i;
const NAMES =
  "access_token|refresh_token|id_token|token|code|code_verifier|client_secret|client_assertion|subject_token|state";
const IN_FORM = new RegExp(`(^|[?&])(${NAMES})=[^&#\\s]+`, "g");
const IN_JSON = new RegExp(`"(${NAMES})"\\s*:\\s*"[^"]*"`, "g");

/** Returns a request as text; credentials and tokens are left out. */
export function describeRequest(
  method: string,
  url: string,
  headers: Record<string, string>,
  body?: string,
): string {
  return compose(`${method} ${redact(url)}`, Object.entries(headers), body ?? "");
}

export function describeResponse({ status, headers }: Response, body: string): string {
  return compose(`HTTP ${status}`, [...headers], body);
}

function compose(first: string, headers: Iterable<[string, string]>, body: string): string {
  const lines = [...headers].map(([name, value]) =>
    SECRET_HEADERS.test(name)
      ? `${name}: ${value.split(" ")[0]?.slice(0, 10)} …`
      : `${name}: ${redact(value)}`,
  );
  return [first, ...lines, ...(body ? ["", redact(body).slice(0, MAX_TEXT)] : [])].join("\n");
}

function redact(text: string): string {
  return text.replace(IN_FORM, "$1$2=…").replace(IN_JSON, '"$1":"…"');
}
