export type SmtpServer = {
  host: string;
  port: number;
  secure: boolean;
  /** Whether the connection must be upgraded with STARTTLS (RFC 3207) before anything is sent. */
  requireTLS: boolean;
  auth?: { user: string; pass: string };
};

const LOOPBACK = new Set(["localhost", "127.0.0.1", "::1"]);
const PORTS = { "smtp:": 587, "smtps:": 465 };

export function validateSmtpUrl(text: string): string | undefined {
  const url = URL.parse(text);
  if (!url?.hostname || !(url.protocol in PORTS))
    return "must be smtp://<host>:<port> or smtps://<host>:<port>, with the username and password before the host";
  if (url.search || url.hash || !["", "/"].includes(url.pathname))
    return "must have no path, query or fragment";
  if (Boolean(url.username) !== Boolean(url.password)) return "must have both a username and a password";
  return undefined;
}

/** Parses a valid `SMTP_URL`. Only a server on this machine may be used without TLS. */
export function parseSmtpUrl(text: string): SmtpServer {
  const url = new URL(text);
  const { protocol, username, password } = url;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const secure = protocol === "smtps:";
  return {
    host,
    port: Number(url.port) || PORTS[protocol as keyof typeof PORTS],
    secure,
    requireTLS: !secure && !LOOPBACK.has(host),
    ...(username && { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }),
  };
}

// One address, with or without a name. No line breaks, which would add headers, and no lists.
const ADDRESS = '[^<>\\s@,;:"\\p{Cc}]{1,64}@[A-Za-z0-9.-]{1,190}';
const SENDER = new RegExp(`^(${ADDRESS}|[^<>@,;:"\\p{Cc}]{1,100} <${ADDRESS}>)$`, "u");

export function validateSender(text: string): string | undefined {
  return SENDER.test(text) ? undefined : "must be an email address, such as linkgate <noreply@example.com>";
}
