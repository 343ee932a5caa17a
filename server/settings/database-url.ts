import { existsSync } from "node:fs";
import { tryTo } from "../../resources/try-to.ts";
import { isDecodable, validated } from "./setting-types.ts";

const FILE = "must name a file, and have no parameter but ?synchronous=full or ?synchronous=normal";
const ONE_HOST =
  "must name one host, which leads to the primary: put HAProxy in front of several, with Patroni's /primary as its check (docs/operate/high-availability.md)";

// libpq and JDBC choose among several hosts by these. The drivers of Node.js ignore them.
const CHOOSES_HOST = /^(target_?session_?attrs|target_?server_?type|load_?balance_?hosts)$/i;

/** The setting `DATABASE_URL`. Its errors contain no part of it, which may be a password. */
export const databaseUrl = validated((text) => {
  if (text.startsWith("sqlite:"))
    return /^sqlite:[^?]+(\?synchronous=(full|normal))?$/i.test(text) ? undefined : FILE;
  const [, scheme, hosts = ""] =
    /^(postgres(?:ql)?|mysql|mariadb):\/\/(?:[^/?#]*@)?([^/?#@]*)/.exec(text) ?? [];
  if (!scheme) return "must start with sqlite:, postgres:// or mysql://";
  if (/,|%2c/i.test(hosts)) return ONE_HOST;
  const isPostgres = scheme.startsWith("postgres");
  // The driver of PostgreSQL accepts a URL without a host, and a % that encodes nothing.
  const accepted = isPostgres ? text.replace("@/", "@x/").replaceAll(/%(?![\da-f]{2})/gi, "%25") : text;
  const url = URL.parse(accepted);
  if (!url || url.pathname.includes("@") || !isDecodable(accepted))
    return "must be <scheme>://<user>:<password>@<host>:<port>/<database>, with special characters percent-encoded";
  for (const [name, value] of url.searchParams) {
    if (CHOOSES_HOST.test(name) || (name === "host" && value.includes(","))) return ONE_HOST;
    if (isPostgres && /^ssl(cert|key|rootcert)$/.test(name) && !existsSync(value))
      return `must name a file that exists in ${name}`;
    // The driver of MySQL accepts an object, or nothing.
    const isOption =
      /^(Amazon RDS)?$/.test(value) || tryTo(() => typeof (JSON.parse(value) || {})) === "object";
    if (!isPostgres && name === "ssl" && !isOption)
      return 'must have a JSON object in ssl, such as {"rejectUnauthorized":true}';
  }
  return undefined;
});
