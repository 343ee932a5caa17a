import test, { type ExecutionContext } from "ava";
import { parse } from "node-html-parser";
import { authorizeUrl, createApp } from "../harness/clients/authorization-request.ts";
import { sendRaw } from "../harness/clients/raw.ts";
import { freePort } from "../harness/program.ts";
import { startTestService } from "../harness/service.ts";

const BASE_URL = "https://links.example.com";
const port = await freePort();
const service = await startTestService({ BASE_URL, PORT: String(port), TRUST_PROXY: "1" });

/** A browser behind a proxy that terminates TLS, forwards the Host and speaks http. */
function browser() {
  const cookies = new Map<string, string>();
  const seen: string[] = [];
  async function send(path: string, form?: Record<string, string>) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await sendRaw(`http://127.0.0.1:${port}`, path, {
      method: form ? "POST" : "GET",
      headers: [
        ...["host", "links.example.com", "accept", "text/html", "cookie", cookie],
        ...["x-forwarded-for", "203.0.113.5", "x-forwarded-proto", "https"],
        ...(form ? ["content-type", "application/x-www-form-urlencoded"] : []),
      ],
      ...(form && { body: new URLSearchParams(form).toString() }),
    });
    for (const line of answer.headers["set-cookie"] ?? []) {
      seen.push(line);
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (name) cookies.set(name, value ?? "");
    }
    const next = answer.headers.location && new URL(answer.headers.location, BASE_URL);
    return { ...answer, next: next || undefined };
  }
  return { send, seen, cookies };
}

/** Asserts that a cookie is sent to this host only, over https, and hidden from scripts and other sites. */
function isProtected(t: ExecutionContext, line: string) {
  for (const attribute of ["secure", "httponly", "samesite=(lax|strict)"])
    t.regex(line, new RegExp(`; ${attribute}(;|$)`, "i"));
  t.notRegex(line, /; domain=/i);
  if (/session/.test(line)) t.regex(line, /^__Host-/);
  if (line.startsWith("__Host-")) t.regex(line, /; path=\/(;|$)/i);
}

const csrfIn = (text: string) => parse(text).querySelector("[name=csrf]")?.attributes.value ?? "";
const pathOf = (url: URL | undefined) => `${url?.pathname}${url?.search}`;

test("behind a TLS proxy, every cookie of a sign-in is Secure, HttpOnly and host-only", async (t) => {
  const { app, user } = await createApp(service);
  const { send, seen, cookies } = browser();
  const asked = await send(authorizeUrl(service, app).slice(BASE_URL.length));
  t.is(asked.status, 303);
  const signIn = await send(pathOf(asked.next));
  t.is(signIn.status, 200);
  const csrf = csrfIn(signIn.text);
  const { username, password } = user;
  const resumed = await send(`${pathOf(asked.next)}/sign-in`, { csrf, username, password });
  t.is(resumed.status, 303);
  t.is(resumed.next?.origin, BASE_URL);
  const consent = await send(pathOf((await send(pathOf(resumed.next))).next));
  t.regex(consent.text, /<h1>Allow /);

  t.true(cookies.has("__Host-session"));
  for (const line of seen) {
    t.regex(line, /^__(Host|Secure)-/);
    isProtected(t, line);
  }
});

test("behind a TLS proxy, the dashboard uses a __Host- cookie", async (t) => {
  const { id } = await service.createOrganization();
  const { username, password } = await service.createUser([id], undefined, "owner");
  const { send, seen, cookies } = browser();
  const inside = await send("/auth/login", { username, password });
  t.is(inside.status, 303, inside.text);
  const base = `/dashboard/organizations/${id}`;
  const csrf = csrfIn((await send(`${base}/members`)).text);
  const invited = await send(`${base}/invitations`, { csrf });
  t.is(invited.status, 303, invited.text);
  t.regex((await send(pathOf(invited.next))).text, /<h1>Invitation link<\/h1>/);
  t.true(cookies.has("__Host-session"));
  t.true(cookies.has("__Secure-one-time-view"));
  for (const line of seen) isProtected(t, line);
});

test("every response over https carries HSTS, also errors", async (t) => {
  const { send } = browser();
  const paths = ["/.well-known/openid-configuration", "/no-such-link", "/oauth/authorize", "/v1/links"];
  for (const path of paths)
    t.regex(`${(await send(path)).headers["strict-transport-security"]}`, /^max-age=(\d{8,})(;|$)/, path);
});

test("every URL in the metadata is https at the configured host, although the proxy speaks http", async (t) => {
  const { send } = browser();
  const document = JSON.parse((await send("/.well-known/openid-configuration")).text);
  t.is(document.issuer, BASE_URL);
  const urls = Object.entries(document).filter(([name]) => name.endsWith("_endpoint") || name === "jwks_uri");
  t.true(urls.length >= 6);
  for (const [name, url] of urls) t.true(String(url).startsWith(`${BASE_URL}/`), name);
});
