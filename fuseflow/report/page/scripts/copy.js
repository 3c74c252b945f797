// Buttons that copy the command beside them.

async function copyText(text) {
  try { await navigator.clipboard.writeText(text); } catch {
    const area = make("textarea", { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

for (const block of document.querySelectorAll("pre.command")) {
  const button = make("button", { type: "button", className: "copy", textContent: "copy" });
  button.addEventListener("click", async () => {
    await copyText(block.querySelector("code").textContent);
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
  block.append(button);
}
