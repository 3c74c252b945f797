// Colours of the graphs: by what nodes are, or by the share of the cycles in which they are busy, starved, waiting, blocked or on the path.

let colouring = "role";

function colourNode(node, state) {
  const rect = node.querySelector("rect");
  const share = things[node.dataset.t]?.shares?.[state];
  node.classList.toggle("heated", share !== undefined);
  rect.style.fill = share === undefined ? "" : `color-mix(in oklab, var(--${state}) ${Math.min(share, 100)}%, var(--raised))`;
}

function colour(state) {
  colouring = state;
  document.documentElement.dataset.colour = state;
  for (const select of document.querySelectorAll("select.colour")) select.value = state;
  for (const node of document.querySelectorAll(".canvas .node")) colourNode(node, state);
}

for (const select of document.querySelectorAll("select.colour")) select.addEventListener("change", () => colour(select.value));
