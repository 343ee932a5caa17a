import type { Settings } from "./settings/config.ts";

export type Endpoint = {
  path: string;
  methods: readonly string[];
  /** Absent if no setting turns it off. */
  isOn?(settings: Settings): boolean;
  /** Browsers open it: its errors are pages, and it has no CORS headers (RFC 9700 §2.6). */
  isPage?: boolean;
  /** The browser origins that may read responses. What every origin may read, caches may store. */
  origins?: "listed" | "every";
  acceptsDpop?: boolean;
  /** Whether requests and guesses are limited by network. */
  isLimited?: boolean;
  /** Whether its path is a label of request metrics, and its refusals are counted by error code. */
  metrics?: "requests" | "refusals";
  /** Its name on the API access page. */
  label?: string;
};

const FOR_CLIENTS = { methods: ["POST"], origins: "listed", isLimited: true, metrics: "refusals" } as const;

/** By the names that oidc-provider and metrics have for them; metadata adds `_endpoint` (RFC 8414 §2). */
export const ENDPOINTS = {
  authorization: {
    path: "/oauth/authorize",
    methods: ["GET", "HEAD", "POST"],
    isPage: true,
    metrics: "refusals",
    label: "Authorization",
  },
  token: { ...FOR_CLIENTS, path: "/oauth/token", acceptsDpop: true, label: "Token" },
  revocation: { ...FOR_CLIENTS, path: "/oauth/revoke", label: "Revocation" },
  introspection: { ...FOR_CLIENTS, path: "/oauth/introspect", label: "Introspection" },
  pushed_authorization_request: { ...FOR_CLIENTS, path: "/oauth/par", acceptsDpop: true },
  userinfo: { ...FOR_CLIENTS, path: "/oauth/userinfo", methods: ["GET", "HEAD", "POST"], acceptsDpop: true },
  registration: {
    ...FOR_CLIENTS,
    path: "/oauth/register",
    isOn: (settings) => settings.DYNAMIC_REGISTRATION !== "off",
  },
  /** RFC 8628 §3.1. */
  device_authorization: {
    ...FOR_CLIENTS,
    path: "/oauth/device",
    isOn: (settings) => settings.DEVICE_GRANT,
    label: "Device authorization",
  },
  /** RFC 8628 §3.3: where a user enters the code that a device shows. */
  code_verification: {
    path: "/device",
    methods: ["GET", "HEAD", "POST"],
    isOn: (settings) => settings.DEVICE_GRANT,
    isPage: true,
    metrics: "requests",
  },
  jwks: { path: "/oauth/jwks", methods: ["GET", "HEAD"], origins: "every", metrics: "requests" },
  leak_reports: {
    path: "/oauth/leaked-credentials",
    methods: ["POST"],
    isOn: (settings) => Boolean(settings.LEAK_REPORT_KEYS),
    isLimited: true,
  },
} satisfies Record<string, Endpoint>;

export const ENDPOINT_LIST = Object.entries<Endpoint>(ENDPOINTS).map(([name, row]) => ({ name, ...row }));

export const endpointsByPath = new Map(ENDPOINT_LIST.map((endpoint) => [endpoint.path, endpoint]));

/** After its pages, an authorization request continues here. */
export const RESUME_PATH = /^\/(?:oauth\/authorize|device)\/[A-Za-z0-9_-]+$/;

export const METADATA_PATH = "/.well-known/oauth-authorization-server";

/** RFC 8414 §3, OpenID Connect Discovery §4: two addresses of the same document. */
export const METADATA_PATHS = [METADATA_PATH, "/.well-known/openid-configuration"];
