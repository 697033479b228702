// A template drawn anew shortly after its text or its data was changed.

const PAUSE = 250;

export const preview = (form) => {
  const stage = document.querySelector("[data-stage]");
  let timer;
  let latest = 0;

  const show = async () => {
    latest += 1;
    const number = latest;
    const answer = await fetch(form.dataset.preview, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    if (answer.redirected || answer.status === 401) return location.reload();
    const html = await answer.text();
    if (number !== latest || !answer.ok) return;
    stage.innerHTML = html;
    stage.querySelectorAll("form[data-at-once]").forEach((inner) => inner.submit());
  };

  document.addEventListener("input", (event) => {
    if (event.target.form !== form) return;
    clearTimeout(timer);
    timer = setTimeout(show, PAUSE);
  });
  form.addEventListener("submit", (event) => {
    if (!event.submitter || !("show" in event.submitter.dataset)) return;
    event.preventDefault();
    show();
  });
  document.querySelectorAll("[data-show]").forEach((button) => { button.hidden = true; });
  show();
};
