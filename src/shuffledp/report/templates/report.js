// Draws the charts in the colours of the current theme, and again when theme or width changes.
(() => {
  "use strict";
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const narrow = window.matchMedia("screen and (max-width: 44rem)");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const PAPER_WIDTH = 660; // CSS pixels that fit between the margins of A4 and Letter

  // Puts the value of a CSS variable wherever a chart says var(--name).
  const resolve = (value, style) => {
    if (typeof value === "string" && value.startsWith("var(--")) {
      return style.getPropertyValue(value.slice(4, -1)).trim();
    }
    if (Array.isArray(value)) return value.map((item) => resolve(item, style));
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolve(item, style)]));
    }
    return value;
  };

  const draw = (width) => {
    const style = getComputedStyle(document.documentElement);
    for (const [id, spec] of Object.entries(charts)) {
      const { data, layout } = resolve(spec, style);
      if (narrow.matches) {
        for (const [path, value] of Object.entries(spec.narrow)) {
          const [axis, key] = path.split(".");
          layout[axis][key] = value;
        }
      }
      if (width) layout.width = width;
      Plotly.react(id, data, layout, { displayModeBar: false, responsive: true });
    }
  };

  draw();
  narrow.addEventListener("change", () => draw());
  dark.addEventListener("change", () => draw());
  window.addEventListener("beforeprint", () => {
    document.documentElement.classList.add("printing");
    draw(PAPER_WIDTH);
  });
  window.addEventListener("afterprint", () => {
    document.documentElement.classList.remove("printing");
    draw();
  });
})();
