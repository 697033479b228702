// A page of a shop that shows one person's inbox; `noroshi serve --dev` prints its address, with a token behind the #.

import "./inbox.js";
import { make } from "./inbox-look.js";

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
  :root { color-scheme: light dark; }
  body { margin: 0; min-height: 100vh; font: 16px/1.6 system-ui, "Hiragino Sans", "Noto Sans JP", sans-serif;
    background: light-dark(#faf7f3, #151413); color: light-dark(#22201e, #f1eeea); }
  header { display: flex; align-items: center; justify-content: space-between; padding: 8px 20px;
    background: light-dark(#ffffff, #1c1b1a); border-bottom: 1px solid light-dark(#e4dfd9, #3a3735); }
  strong { font-size: 18px; letter-spacing: 0.02em; }
  main { max-width: 640px; margin: 48px auto; padding: 0 20px; }
  code { padding: 2px 6px; border-radius: 6px; background: light-dark(#efeae3, #272523); overflow-wrap: anywhere; }
`);
document.adoptedStyleSheets = [sheet];

const given = new URLSearchParams(location.hash.slice(1));
const inbox = make("noroshi-inbox", { user: given.get("user") ?? "hanako", token: given.get("token") ?? "" });
document.documentElement.lang = given.get("lang") ?? "ja";
document.body.append(
  make("header", {}, make("strong", {}, "狼煙商店"), inbox),
  make(
    "main",
    {},
    make("p", {}, "This page belongs to your product. The bell above is one line of HTML:"),
    make("p", {}, make("code", {}, '<noroshi-inbox user="hanako" token-url="/my/token"></noroshi-inbox>')),
    make("p", {}, "Send something to hanako on the channel in_app, and it appears here at once."),
  ),
);
