import { apiAt } from "./clients/api.ts";
import { codeFor, postAsClient, redeemCode, refresh } from "./clients/oauth.ts";
import { TestBrowser } from "./clients/test-browser.ts";
import { bearer, type TestOrganization, type TestService, type TestUser } from "./service.ts";

/** What servers acknowledged. */
export type Acknowledged = {
  /** Slugs by link ID. Each link redirects once. */
  links: Map<string, string>;
  /** IDs of links that redirected. */
  redirected: Set<string>;
  tokens: string[];
  refreshTokens: string[];
  failures: string[];
};

/** A user who keeps using an app. */
export type UpgradeLoad = Acknowledged & {
  /** Resolves when so many more rounds are complete. */
  rounds(count: number): Promise<void>;
  stop(): Promise<void>;
};

type Caller = { app: TestOrganization; user: TestUser };

/**
 * Repeats, each time at the server whose turn it is: client credentials, new links, one redirect of each, introspection, the code flow
 * with its pages, and refreshes. While the only server restarts, those whose connection fails wait for it.
 */
export function startUpgradeLoad(
  { both }: { both: TestService },
  { app, user }: Caller,
  serversNow: () => TestService[],
  whileRestarting?: () => Promise<void> | undefined,
): UpgradeLoad {
  const known: Acknowledged = {
    links: new Map(),
    redirected: new Set(),
    tokens: [],
    refreshTokens: [],
    failures: [],
  };
  const waiting = new Set<() => void>();
  let rounds = 0;
  let turn = 0;
  let isStopped = false;
  const nextServer = () => {
    const servers = serversNow();
    return servers[turn++ % servers.length] as TestService;
  };

  async function useToken(token: string) {
    const { id, slug } = await apiAt(nextServer().url, token).createLink();
    known.links.set(id, slug);
    const redirect = await apiAt(nextServer().url).get(`/${slug}`);
    if (redirect.status !== 302) throw new Error(`redirect: ${redirect.status}`);
    known.redirected.add(id);
    const { body } = await postAsClient(nextServer(), "introspect", app, { token });
    if (body.active !== true) throw new Error("introspection: inactive");
  }

  async function useCredentials() {
    const token = await nextServer().token(app);
    known.tokens.push(token);
    await useToken(token);
  }

  /** The pages come from all servers in turn. */
  async function useCode(browser: TestBrowser) {
    const code = await codeFor(both, app, user, { browser });
    const issued = await redeemCode(nextServer(), app, code);
    if (issued.status !== 200) throw new Error(`code: ${issued.status} ${issued.text}`);
    const [accessToken, refreshToken] = [String(issued.body.access_token), String(issued.body.refresh_token)];
    const { status, body, text } = await refresh(nextServer(), app, refreshToken);
    if (status !== 200) throw new Error(`refresh: ${status} ${text}`);
    known.tokens.push(accessToken, String(body.access_token));
    known.refreshTokens.push(refreshToken);
    const answer = await fetch(`${nextServer().url}/v1/organization`, {
      headers: bearer(String(body.access_token)),
    });
    if (answer.status !== 200) throw new Error(`API: ${answer.status} ${await answer.text()}`);
  }

  async function repeat(work: () => Promise<void>) {
    while (!isStopped) {
      await work().catch((error) => {
        const text = String(error);
        const restarted = text === "TypeError: fetch failed" ? whileRestarting?.() : undefined;
        if (!restarted) known.failures.push(text);
        return restarted;
      });
      rounds++;
      for (const look of waiting) look();
    }
  }

  const browser = new TestBrowser(both.url);
  const running = [repeat(useCredentials), repeat(useCredentials), repeat(() => useCode(browser))];

  return {
    ...known,
    rounds(count) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const goal = rounds + count;
      const look = () => {
        if (rounds >= goal) resolve();
      };
      waiting.add(look);
      return promise.finally(() => waiting.delete(look));
    },
    async stop() {
      isStopped = true;
      await Promise.all(running);
    },
  };
}
