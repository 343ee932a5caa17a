import { connect, type SecureVersion } from "node:tls";
import type { Check } from "../check.ts";
import type { Conversation, Reply } from "../conversation.ts";
import { expect, needs } from "../expect.ts";

/** Resolves to whether the server accepts a connection with this version of TLS at most. */
function accepts(url: URL, version: SecureVersion): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({
      host: url.hostname,
      port: Number(url.port) || 443,
      servername: url.hostname,
      minVersion: "TLSv1",
      maxVersion: version,
      ciphers: "DEFAULT@SECLEVEL=0",
      rejectUnauthorized: false, // every other request verifies the certificate
    });
    socket.once("secureConnect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

function httpsOf({ target }: Conversation): URL {
  const url = new URL(target.issuer);
  needs(url.protocol === "https:", "the server is on loopback, without TLS");
  return url;
}

const replies: Record<string, (conversation: Conversation) => Promise<Reply>> = {
  "a token response": (conversation) => conversation.token(),
  "an error of the token endpoint": (conversation) => conversation.token({ grant_type: "unknown" }),
};

export const transportChecks: Check[] = [
  ...(
    [
      ["TLSv1", "TLS 1.0", "RFC 8996 §4"],
      ["TLSv1.1", "TLS 1.1", "RFC 8996 §5"],
    ] as const
  ).map(([version, name, clause]) => ({
    id: `tls-${version.toLowerCase()}`,
    title: `${name} is not accepted`,
    clause,
    async run(conversation: Conversation) {
      expect(!(await accepts(httpsOf(conversation), version)), `${name} is accepted`);
    },
  })),
  {
    id: "tls-modern",
    title: "TLS 1.2 or 1.3 is accepted",
    clause: "RFC 9325 §3.1.1",
    async run(conversation) {
      expect(await accepts(httpsOf(conversation), "TLSv1.3"), "no TLS connection can be made");
    },
  },
  {
    id: "tls-hsts",
    title: "Strict-Transport-Security is sent",
    clause: "RFC 6797 §7.1, RFC 9325 §3.2",
    isRecommended: true,
    async run(conversation) {
      httpsOf(conversation);
      const { headers } = await conversation.send(conversation.target.metadataUrl);
      expect(headers.has("strict-transport-security"), "Strict-Transport-Security is missing");
    },
  },
  {
    id: "http-plain",
    title: "Plain http is not served",
    clause: "RFC 6749 §3.2, RFC 9325 §3.2",
    async run(conversation) {
      const url = httpsOf(conversation);
      const reply = await conversation.send(`http://${url.hostname}${url.pathname}`).catch(() => undefined);
      const location = reply?.headers.get("location") ?? "";
      expect(!reply || reply.status >= 400 || location.startsWith("https:"), "plain http is served");
    },
  },
  ...Object.entries(replies).flatMap(([what, request], index) => {
    const id = index === 0 ? "token" : "token-error";
    return [
      {
        id: `${id}-no-store`,
        title: `Caches don't store ${what}`,
        clause: "RFC 6749 §5.1, §5.2",
        async run(conversation: Conversation) {
          const control = (await request(conversation)).headers.get("cache-control") ?? "";
          expect(/\bno-store\b/.test(control), `Cache-Control is "${control}"`);
        },
      },
      {
        id: `${id}-json`,
        title: `The content of ${what} is JSON`,
        clause: "RFC 6749 §5.1, §5.2",
        async run(conversation: Conversation) {
          const { headers, body } = await request(conversation);
          expect(headers.get("content-type")?.startsWith("application/json"), "the content type is not JSON");
          expect(Object.keys(body).length > 0, "the content is no JSON object");
        },
      },
      {
        id: `${id}-nosniff`,
        title: `Browsers don't guess the type of ${what}`,
        clause: "Fetch §3.6",
        isRecommended: true,
        async run(conversation: Conversation) {
          const { headers } = await request(conversation);
          expect(
            headers.get("x-content-type-options") === "nosniff",
            "X-Content-Type-Options is not nosniff",
          );
        },
      },
    ];
  }),
  {
    id: "server-software",
    title: "The software is not named",
    clause: "RFC 9110 §17.12",
    isRecommended: true,
    async run(conversation) {
      const { headers } = await conversation.send(conversation.target.metadataUrl);
      expect(!headers.has("x-powered-by"), "X-Powered-By is sent");
      expect(!/\d/.test(headers.get("server") ?? ""), "Server has a version");
    },
  },
  {
    id: "authorization-frames",
    title: "Other sites can't frame the authorization pages",
    clause: "RFC 9700 §4.16",
    async run(conversation) {
      const { headers } = await followToPage(conversation);
      const policy = headers.get("content-security-policy") ?? "";
      const isProtected = /frame-ancestors/.test(policy) || headers.has("x-frame-options");
      expect(isProtected, "neither frame-ancestors nor X-Frame-Options is sent");
    },
  },
  {
    id: "authorization-referrer",
    title: "The authorization pages don't send their URL to other sites",
    clause: "RFC 9700 §4.2.4",
    isRecommended: true,
    async run(conversation) {
      const policy = (await followToPage(conversation)).headers.get("referrer-policy") ?? "";
      const isSafe =
        /no-referrer|same-origin|strict-origin|origin/.test(policy) && !/unsafe-url/.test(policy);
      expect(isSafe, `Referrer-Policy is "${policy}"`);
    },
  },
  {
    id: "authorization-no-store",
    title: "Caches don't store the authorization pages",
    clause: "RFC 9700 §4.3",
    isRecommended: true,
    async run(conversation) {
      const control = (await followToPage(conversation)).headers.get("cache-control") ?? "";
      expect(/no-store|no-cache|private/.test(control), `Cache-Control is "${control}"`);
    },
  },
  {
    id: "authorization-cors",
    title: "The authorization endpoint doesn't support CORS",
    clause: "RFC 9700 §2.6",
    async run(conversation) {
      const { url } = conversation.authorizationRequest();
      const { headers } = await conversation.send(url, { headers: { origin: "https://app.example" } });
      expect(!headers.has("access-control-allow-origin"), "Access-Control-Allow-Origin is sent");
    },
  },
];

/** Follows the redirects of the service to its first page, with its cookies. */
async function followToPage(conversation: Conversation): Promise<Reply> {
  const cookies = new Map<string, string>();
  let { url } = conversation.authorizationRequest();
  for (let redirects = 0; redirects < 10; redirects++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const reply = await conversation.send(url, {
      headers: { accept: "text/html", ...(cookie && { cookie }) },
    });
    for (const line of reply.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const location = reply.headers.get("location");
    if (!location) return reply;
    url = new URL(location, url).href;
  }
  return needs<Reply>(false, "the authorization request ends on no page");
}
