const REDACTED = "[redacted]";
// What a user may paste by mistake: credentials of this service, signing secrets, and the tokens in its links.
const CREDENTIAL = /\b(?:lg[sar]_|whsec_)[^\s"'&]+/g;
const LINK_TOKEN = /(\/(?:reset-password|invitations|invitation)\/)[^\s/?#]+/g;
const USER_INFO = /^([a-z][a-z0-9+.-]*:\/\/)[^\s/?#]*@/i;
const KEY = /PRIVATE KEY|^\s*\{/;

/** Replaces what may be a secret in an argument or option of a command, for the operator's log. */
export function redact(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redact);
  if (typeof value !== "string") return value;
  if (KEY.test(value)) return REDACTED;
  return value
    .replace(CREDENTIAL, REDACTED)
    .replace(LINK_TOKEN, `$1${REDACTED}`)
    .replace(USER_INFO, `$1${REDACTED}@`)
    .replace(/\?[^#]*/, (query) => (URL.canParse(value) ? `?${REDACTED}` : query));
}
