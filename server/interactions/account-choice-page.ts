import { hidden } from "../ui/fields.ts";
import { html } from "../ui/html.ts";
import { page } from "../ui/page.ts";

export type AccountChoicePage = {
  action: string;
  csrf: string;
  /** The client's organization, or the host of its metadata document. */
  app: string;
  /** The user who is signed in. */
  username: string;
};

/** Renders the choice of the account that an app gets access to. */
export function accountChoicePage({ action, csrf, app, username }: AccountChoicePage): string {
  return page(
    "Choose an account",
    html`<h1>Choose an account</h1>
<p><strong><bdi>${app}</bdi></strong> is requesting access. You are signed in as <strong><bdi>${username}</bdi></strong>.</p>
<form method="post" action="${action}">
${hidden("csrf", csrf)}
<div class="choices">
<button type="submit" name="account" value="current">Continue as <bdi>${username}</bdi></button>
<button type="submit" name="account" value="other" class="quiet">Use another account</button>
</div>
</form>`,
  );
}
