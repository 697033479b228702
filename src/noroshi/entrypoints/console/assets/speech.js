// A call, read aloud by the browser's own voice.

const stopped = (button) => {
  button.classList.remove("on");
  button.querySelector("span").textContent = "Listen";
};

export const listen = () => {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-speak]");
    if (!button) return;
    if (!("speechSynthesis" in window)) {
      button.disabled = true;
      button.querySelector("span").textContent = "This browser has no voice";
      return;
    }
    if (speechSynthesis.speaking) {
      speechSynthesis.cancel();
      return;
    }
    const said = new SpeechSynthesisUtterance(button.closest(".screen").querySelector("[data-speech]").textContent);
    said.lang = button.dataset.lang;
    said.addEventListener("end", () => stopped(button));
    said.addEventListener("error", () => stopped(button));
    button.classList.add("on");
    button.querySelector("span").textContent = "Stop";
    speechSynthesis.speak(said);
  });
};
