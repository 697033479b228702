// A stream of rows, already drawn by the server, put where they belong.

import { refreshTimes } from "./times.js";

const MOST = 200;

const drawn = (html) => {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  return holder.content.firstElementChild;
};

const put = (list, html) => {
  const row = drawn(html);
  const known = document.getElementById(row.id);
  if (known) {
    const isFocused = known.contains(document.activeElement);
    known.replaceWith(row);
    if (isFocused) row.querySelector("a")?.focus();
  } else {
    row.classList.add("new");
    list.prepend(row);
    while (list.children.length > MOST) list.lastElementChild.remove();
  }
};

export const watch = (sign) => {
  const list = document.querySelector(sign.dataset.into);
  const standing = sign.dataset.standing && document.querySelector(sign.dataset.standing);
  const source = new EventSource(sign.dataset.live);
  const say = (isOn, text) => {
    sign.classList.toggle("on", isOn);
    sign.lastElementChild.textContent = text;
  };
  source.addEventListener("open", () => say(true, "Live"));
  source.addEventListener("error", () => say(false, "Connecting…"));
  source.addEventListener("row", (event) => {
    put(list, JSON.parse(event.data));
    refreshTimes(list);
  });
  source.addEventListener("standing", (event) => {
    if (!standing || standing.contains(document.activeElement)) return;
    standing.innerHTML = JSON.parse(event.data);
  });
  source.addEventListener("ended", () => {
    source.close();
    location.reload();
  });
  addEventListener("pagehide", () => source.close());
};
