import { Provider } from "oidc-provider";
import { workloadOf } from "../workloads.ts";

type Model = { prototype: { save(...options: unknown[]): Promise<string> } };

/**
 * Seam: the token of a workload is used up right before the access token is stored, after every other check. A request
 * with a typo can be repeated with the same token: Kubernetes gives a pod no other one for minutes.
 * No option: nothing is called between the checks of `client_credentials` and the storage.
 * Upstream would have to offer: a hook before a token is issued, or the grant's steps.
 */
export function useAssertionsBeforeIssuing(provider: Provider): void {
  const { prototype } = provider.ClientCredentials as unknown as Model;
  const { save } = prototype;
  prototype.save = async function saveAfterUse(...options) {
    const { ctx } = Provider;
    await (ctx && workloadOf(ctx)?.useOnce());
    return save.apply(this, options);
  };
}
