import type { Context, Middleware } from "koa";
import type { Provider } from "oidc-provider";
import { area, below } from "../resources/area.ts";
import type { Cores } from "../resources/cores.ts";
import { findAccount } from "./accounts.ts";
import { originsOf } from "./addresses.ts";
import { createCsrf } from "./csrf.ts";
import { dashboard } from "./dashboard/index.ts";
import { interactions } from "./interactions.ts";
import { landing } from "./landing.ts";
import { createLimits } from "./limits.ts";
import { answerOutage, isOutage } from "./outage.ts";
import type { OnError, Parts } from "./parts.ts";
import { createPasswords } from "./passwords.ts";
import { showExternal } from "./people/external-button.ts";
import { createIdentityProvider } from "./people/identity-provider.ts";
import { people } from "./people/index.ts";
import { isOpen } from "./people/register.ts";
import { createSessions } from "./people/sessions.ts";
import { signedInAccount } from "./people/sign-in.ts";
import { completeAnswers } from "./provider/answers.ts";
import { oauthCors } from "./provider/cors.ts";
import { createProvider } from "./provider/index.ts";
import { authorizeByForm, isAuthorization, isOauthPath, oauthPaths } from "./provider/paths.ts";
import { passwordReset } from "./reset.ts";
import { createSignIn } from "./sign-in.ts";
import { refusedPage } from "./views/page.ts";

/** The authorization server: oidc-provider's own Koa application, and what stands in front of its routes. */
export function authorizationServer(
  options: Parts & { cores: Cores },
  onError: OnError,
): { app: Provider; middleware: Middleware[] } {
  const { settings, addresses, storage, keys, counters } = options;
  const { accounts, clients, grants } = storage;
  const limits = createLimits(settings.RATE_LIMIT, counters);
  const passwords = createPasswords();
  const origins = originsOf(settings, addresses);
  const signIn = createSignIn(accounts, passwords, limits);

  const provider = createProvider({
    settings,
    addresses,
    keys,
    clients,
    limits,
    origins,
    adapter: storage.oidcAdapter,
    findAccount: findAccount({ accounts, grants }),
    renderError: (ctx, out) => {
      ctx.type = "html";
      ctx.body = refusedPage(out.error_description ?? out.error);
    },
  });
  // The library has made a 500 of it by then.
  provider.on("server_error", (ctx: Context, error: unknown) => {
    onError(error, ctx);
    if (isOutage(error)) answerOutage(ctx);
  });

  const sessions = createSessions(provider, addresses.base);
  const identityProvider = createIdentityProvider(settings, `${addresses.base}/auth/sso/callback`, onError);
  const external = showExternal(identityProvider);
  const isSignedIn = async (ctx: Context) => Boolean(await signedInAccount(ctx, { sessions, accounts }));
  const entry = { provider, passwords, limits, signIn, sessions, identityProvider, external };

  return {
    app: provider,
    middleware: [
      landing(addresses, { isSignedIn, mayRegister: isOpen(settings, undefined) }),
      area(isOauthPath, [oauthPaths, oauthCors(origins), limits.oauth]),
      area(isAuthorization, [limits.authorization, authorizeByForm]),
      completeAnswers(settings),
      area(
        below("/interaction/"),
        interactions({
          provider,
          storage,
          csrf: createCsrf(keys.signing),
          sessions,
          external,
          signIn,
        }),
      ),
      area(below("/auth/reset-password/"), [passwordReset(accounts, passwords)]),
      ...people({ ...options, ...entry, onError, dashboard: dashboard(options) }),
    ],
  };
}
