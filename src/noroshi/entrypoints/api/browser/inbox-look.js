// How <noroshi-inbox> looks and speaks: its texts, its style, its icons.

export const TEXTS = {
  en: {
    title: "Notifications",
    bell: (unread) => (unread ? `Notifications, ${unread} unread` : "Notifications"),
    unread: "Unread",
    archive: (title) => `Archive: ${title}`,
    readAll: "Mark all as read",
    older: "Show older",
    empty: "Nothing here yet.",
    close: "Close",
    offline: "Not connected. Trying again …",
    failed: "That did not work. Please try again.",
    arrived: (title) => `New: ${title}`,
  },
  ja: {
    title: "お知らせ",
    bell: (unread) => (unread ? `お知らせ（未読${unread}件）` : "お知らせ"),
    unread: "未読",
    archive: (title) => `片付ける: ${title}`,
    readAll: "すべて既読にする",
    older: "以前のお知らせ",
    empty: "お知らせはまだありません。",
    close: "閉じる",
    offline: "接続していません。再接続しています…",
    failed: "うまくいきませんでした。もう一度お試しください。",
    arrived: (title) => `新着: ${title}`,
  },
};

const STYLE = `
:host {
  --accent: var(--noroshi-accent, light-dark(#b3401f, #e8825f));
  --background: var(--noroshi-background, light-dark(#ffffff, #1c1b1a));
  --text: var(--noroshi-text, light-dark(#22201e, #f1eeea));
  --muted: var(--noroshi-muted, light-dark(#6a645e, #a8a19a));
  --border: var(--noroshi-border, light-dark(#e4dfd9, #3a3735));
  --hover: var(--noroshi-hover, light-dark(#f7f4f0, #272523));
  --badge: var(--noroshi-badge, #b3401f);
  --badge-text: var(--noroshi-badge-text, #ffffff);
  --radius: var(--noroshi-radius, 12px);
  position: relative;
  display: inline-block;
  color: var(--text);
  font: var(--noroshi-font, 15px/1.5 system-ui, "Hiragino Sans", "Noto Sans JP", sans-serif);
}
:host([hidden]), [hidden] { display: none !important; }
* { box-sizing: border-box; }
button, a { font: inherit; color: inherit; }
button { border: 0; background: none; cursor: pointer; border-radius: 8px; }
button:focus-visible, a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
svg { display: block; width: 22px; height: 22px; fill: none; stroke: currentColor; stroke-width: 1.8;
  stroke-linecap: round; stroke-linejoin: round; }
.bell { position: relative; padding: 11px; color: inherit; }
.bell:hover { background: var(--hover); }
.badge { position: absolute; top: 3px; right: 1px; min-width: 19px; height: 19px; padding: 0 5px; border-radius: 10px;
  background: var(--badge); color: var(--badge-text); font-size: 11.5px; font-weight: 650; line-height: 19px;
  text-align: center; font-variant-numeric: tabular-nums; }
.panel { position: absolute; z-index: 2147483000; top: calc(100% + 8px); right: 0; width: var(--noroshi-width, 380px);
  max-width: calc(100vw - 24px); max-height: min(560px, calc(100vh - 96px)); display: flex; flex-direction: column;
  overflow: hidden; background: var(--background); border: 1px solid var(--border); border-radius: var(--radius);
  box-shadow: 0 12px 40px rgb(0 0 0 / 0.16); text-align: start; }
header { display: flex; align-items: center; gap: 4px; padding: 10px 8px 10px 18px;
  border-bottom: 1px solid var(--border); }
h2:focus { outline: none; }
h2 { flex: 1; margin: 0; font-size: 16px; font-weight: 650; }
.quiet { padding: 7px 10px; color: var(--muted); font-size: 13px; }
.quiet:hover { background: var(--hover); color: var(--text); }
.icon { padding: 7px; color: var(--muted); }
.icon:hover { background: var(--hover); color: var(--text); }
.icon svg { width: 18px; height: 18px; }
.body { overflow-y: auto; overscroll-behavior: contain; flex: 1; }
ul { margin: 0; padding: 0; list-style: none; }
li { position: relative; display: flex; align-items: flex-start; border-bottom: 1px solid var(--border); }
li:last-child { border-bottom: 0; }
li:hover { background: var(--hover); }
.entry { flex: 1; min-width: 0; display: block; padding: 13px 4px 13px 30px; border-radius: 0; color: inherit;
  text-align: start; text-decoration: none; }
.entry:focus-visible { outline-offset: -3px; border-radius: 8px; }
.unread .entry::before { content: ""; position: absolute; left: 13px; top: 21px; width: 8px; height: 8px;
  border-radius: 50%; background: var(--accent); }
.title { display: block; font-weight: 500; overflow-wrap: anywhere; }
.unread .title { font-weight: 650; }
.text { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden;
  color: var(--muted); white-space: pre-line; overflow-wrap: anywhere; }
time { display: block; margin-top: 3px; color: var(--muted); font-size: 12.5px; }
.archive { margin: 9px 8px 0 0; opacity: 0; }
li:hover .archive, li:focus-within .archive { opacity: 1; }
.note { margin: 0; padding: 36px 24px; color: var(--muted); text-align: center; }
.bar { padding: 8px 18px; border-bottom: 1px solid var(--border); color: var(--muted); font-size: 13px; }
.more { display: block; width: 100%; padding: 12px; border-radius: 0; color: var(--accent); font-size: 14px; }
.more:hover { background: var(--hover); }
.said { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
@media (hover: none) { .archive { opacity: 1; } }
@media (max-width: 480px) {
  .panel { position: fixed; inset: 0; width: auto; max-width: none; max-height: none; border: 0; border-radius: 0; }
  .icon, .quiet { padding: 11px; }
}
@media (prefers-reduced-motion: no-preference) {
  .badge { animation: pop 180ms ease-out; }
  .archive { transition: opacity 120ms; }
  @keyframes pop { from { transform: scale(0.5); } }
}
@media (forced-colors: active) { .unread .entry::before { background: Highlight; } }
`;

const PATHS = {
  bell: ["M6 10a6 6 0 1 1 12 0c0 5 2 6.5 2 6.5H4S6 15 6 10z", "M10 20a2.2 2.2 0 0 0 4 0"],
  close: ["M6 6l12 12", "M18 6L6 18"],
  archive: ["M4 8h16v11H4z", "M3 4.5h18V8H3z", "M10 12h4"],
};

export const sheet = new CSSStyleSheet();
sheet.replaceSync(STYLE);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  for (const d of PATHS[name]) {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", d);
    svg.append(path);
  }
  return svg;
}

/** How long ago, in words. */
export function ago(at, lang) {
  const seconds = (at - Date.now()) / 1000;
  const form = new Intl.RelativeTimeFormat(lang, { numeric: "auto" });
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (Math.abs(seconds) >= size) return form.format(Math.trunc(seconds / size), unit);
  }
  return form.format(0, "second");
}
